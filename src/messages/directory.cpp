// SPDX-License-Identifier: Apache-2.0
#include "messages/directory.hpp"

#include <chrono>

#include "cluster/words/codec.hpp"
#include "messages/messenger.hpp"
#include "messages/office.hpp"
#include "strata/detail/deadline.hpp"
#include "strata/remote_thread.hpp"

namespace strata::messages {

using detail::published_value;

void directory::wait(strata::detail::condition_queue& in,
                     std::unique_lock<strata::detail::spin_lock>& home, std::int64_t deadline_ns) {
  strata::detail::spin_lock* const lock = home.release();
  try {
    (void)in.wait([](void* held) { static_cast<strata::detail::spin_lock*>(held)->unlock(); }, lock,
                  deadline_ns);
  } catch (const std::exception&) {  // it has not waited, nor let go of the lock
    home = std::unique_lock(*lock, std::adopt_lock);
    throw;
  } catch (...) {  // it is cancelled where it has waited
    home = std::unique_lock(*lock);
    throw;
  }
  home = std::unique_lock(*lock);
}

void directory::wait_for_name(const std::string& name,
                              std::unique_lock<strata::detail::spin_lock>& home,
                              std::int64_t deadline_ns) {
  awaited& a = awaited_[name];  // stays where it is for as long as it has waiters
  ++a.waiters;
  const auto end = [&] {
    if (--a.waiters == 0) awaited_.erase(name);
  };
  try {
    wait(a.entered, home, deadline_ns);
  } catch (...) {  // a thread may be cancelled here, too
    end();
    throw;
  }
  end();
}

// With home_lock_.
void directory::wake_all() noexcept {
  members_changed_.notify(UINT32_MAX);
  for (auto& [name, a] : awaited_) a.entered.notify(UINT32_MAX);
}

std::uint64_t directory::new_publication(net::node_id self) noexcept {
  std::uint64_t none = 0;
  if (publications_.load(std::memory_order_relaxed) == none)
    publications_.compare_exchange_strong(
        none, static_cast<std::uint64_t>(strata::detail::deadline_now()) + 1,
        std::memory_order_relaxed);
  return std::uint64_t{self} << 48 |
         (publications_.fetch_add(1, std::memory_order_relaxed) & 0xFFFF'FFFF'FFFFU);
}

std::uint64_t directory::enter(const std::string& name, const published_value& v) {
  const strata::detail::uninterrupted guard;
  const std::lock_guard lock(home_lock_);
  const auto [known, is_new] = home_.try_emplace(name, entry{v, {}});
  // Known already: whoever asks may ask again, because the home that took it left before it
  // answered.
  if (!is_new) return known->second.value.publication;
  if (const auto a = awaited_.find(name); a != awaited_.end()) a->second.entered.notify(UINT32_MAX);
  return v.publication;
}

published_value directory::give(const std::string& name, net::node_id asks,
                                std::int64_t deadline_ns) {
  const strata::detail::uninterrupted guard;
  std::unique_lock lock(home_lock_);
  auto found = home_.find(name);
  while (found == home_.end()) {
    if (loss_ != nullptr) std::rethrow_exception(loss_);
    if (is_leaving_ || strata::detail::deadline_now() >= deadline_ns) return {};
    wait_for_name(name, lock, deadline_ns);
    found = home_.find(name);
  }
  found->second.remembered_by.insert(asks);
  return found->second.value;
}

bool directory::remove(const std::string& name, std::uint64_t publication,
                       std::set<net::node_id>& remembered_by) {
  const strata::detail::uninterrupted guard;
  const std::lock_guard lock(home_lock_);
  const auto found = home_.find(name);
  if (found == home_.end()) return false;
  if (publication != 0 && found->second.value.publication != publication) return false;
  remembered_by = std::move(found->second.remembered_by);
  home_.erase(found);
  return true;
}

void directory::await_duty(const messenger& office, std::size_t hash) {
  const strata::detail::uninterrupted guard;
  std::unique_lock lock(home_lock_);
  while (office.home_of(hash) != strata::detail::this_worker().node) {
    if (loss_ != nullptr) std::rethrow_exception(loss_);
    wait(members_changed_, lock, strata::detail::parking::never);
  }
}

void directory::members_have_changed() {
  const std::lock_guard lock(home_lock_);
  wake_all();
}

void directory::forget_those_of(net::node_id leaver) {
  const auto is_theirs = [leaver](const published_value& v) {
    return publisher_of(v.publication) == leaver;
  };
  {
    const std::lock_guard lock(home_lock_);
    std::erase_if(home_, [&](const auto& known) { return is_theirs(known.second.value); });
  }
  const std::lock_guard lock(cache_mutex_);
  // Also of what is just being asked for: remember() comes too late then.
  ++epoch_;
  std::erase_if(cache_, [&](const auto& known) { return is_theirs(known.second); });
}

void directory::on_lost(const std::exception_ptr& error) {
  const std::lock_guard lock(home_lock_);
  loss_ = error;
  wake_all();
}

void directory::begin_to_leave() {
  const std::lock_guard lock(home_lock_);
  is_leaving_ = true;
  wake_all();
}

// An entry: name, value, how many remember it, who.
std::vector<std::vector<std::byte>> directory::pack(std::size_t bytes_max) {
  std::vector<std::vector<std::byte>> pieces;
  const std::lock_guard lock(home_lock_);
  for (const auto& [name, e] : home_) {
    detail::resource_name fixed;
    name.copy(fixed.text.data(), name.size());
    cluster::writer out;
    out.add(fixed).add(e.value).add(static_cast<std::uint32_t>(e.remembered_by.size()));
    for (const net::node_id n : e.remembered_by) out.add(n);
    if (pieces.empty() || pieces.back().size() + out.size() > bytes_max) pieces.emplace_back();
    pieces.back().insert(pieces.back().end(), out.bytes().begin(), out.bytes().end());
  }
  return pieces;
}

void directory::inherit(std::span<const std::byte> packed, net::node_id nodes,
                        const std::function<bool(net::node_id)>& has) {
  cluster::reader in(packed);
  const std::lock_guard lock(home_lock_);
  while (!in.empty()) {
    auto name = in.take<detail::resource_name>();
    name.text.back() = 0;
    entry e;
    e.value = in.take<published_value>();
    if (name.view().empty()) throw cluster::malformed("a name without a letter");
    if (e.value.bytes > e.value.data.size() || e.value.found != 1)
      throw cluster::malformed("a name of too long a value, or none");
    const net::node_id publisher = publisher_of(e.value.publication);
    if (publisher >= nodes) throw cluster::malformed("a name that no node has published");
    for (auto left = in.take<std::uint32_t>(); left > 0; --left) {
      const auto n = in.take<net::node_id>();
      if (n >= nodes) throw cluster::malformed("a name that no node remembers");
      e.remembered_by.insert(n);
    }
    if (has(publisher)) home_.insert_or_assign(std::string(name.view()), e);
  }
  wake_all();
}

published_value directory::recall(const std::string& name, std::uint64_t& epoch) {
  const strata::detail::uninterrupted guard;
  const std::lock_guard lock(cache_mutex_);
  epoch = epoch_;
  const auto found = cache_.find(name);
  return found != cache_.end() ? found->second : published_value{};
}

void directory::remember(const std::string& name, const published_value& v, std::uint64_t epoch) {
  const strata::detail::uninterrupted guard;
  const std::lock_guard lock(cache_mutex_);
  if (epoch == epoch_) cache_.insert_or_assign(name, v);
}

void directory::forget(const std::string& name) {
  const strata::detail::uninterrupted guard;
  const std::lock_guard lock(cache_mutex_);
  ++epoch_;
  cache_.erase(name);
}

}  // namespace strata::messages

namespace strata {
namespace detail {
namespace {

messages::messenger& office_of_names() {
  return messages::office_or_refusal("a name can only be used within a runtime (runtime::run())");
}

std::size_t hash_of(const resource_name& name) {
  return std::hash<std::string_view>()(name.view());
}

on_node home_of(const resource_name& name) { return {office_of_names().home_of(hash_of(name))}; }

// ---- made on the name's home ----

messages::directory& names_at_home(const resource_name& name) {
  messages::messenger& office = office_of_names();
  office.names.await_duty(office, hash_of(name));
  return office.names;
}

std::uint64_t enter_at_home(const resource_name& name, const published_value& v) {
  return names_at_home(name).enter(std::string(name.view()), v);
}

// Who asks is called when the name is withdrawn, so there has to be such a node.
published_value give_from_home(const resource_name& name, node_id_t asks, std::int64_t limit_ns) {
  if (asks >= num_nodes()) refuse_node(asks, this_worker());
  const std::int64_t deadline_ns = deadline_after(std::chrono::nanoseconds(limit_ns));
  return names_at_home(name).give(std::string(name.view()), asks, deadline_ns);
}

void forget_here(const resource_name& name) {
  office_of_names().names.forget(std::string(name.view()));
}

bool withdraw_at_home(const resource_name& name, std::uint64_t publication) {
  std::set<net::node_id> remembered_by;
  if (!names_at_home(name).remove(std::string(name.view()), publication, remembered_by))
    return false;
  for (const net::node_id n : remembered_by) {
    try {
      call<forget_here>(on_node{n}, name);
    } catch (const node_left_error&) {  // nobody remembers anything there
    }
  }
  return true;
}

// ask(home), with the name's home; again when that left before it could answer.
template <class Ask>
auto ask_home(const resource_name& name, Ask ask) {
  while (true) {
    const on_node home = home_of(name);
    try {
      return ask(home);
    } catch (const node_left_error&) {
    }
  }
}
template <auto F, class... Arguments>
auto call_home(const resource_name& name, const Arguments&... arguments) {
  return ask_home(name, [&](const on_node& home) { return call<F>(home, name, arguments...); });
}

// Its publisher has not left. What this node knows of that its home may hear later.
bool is_of_the_job(std::uint64_t publication) {
  return office_of_names().has(messages::directory::publisher_of(publication));
}

// Suspends the calling thread until it is worth asking again.
void wait_for_news() { this_thread::sleep_for(std::chrono::milliseconds(5)); }

}  // namespace

resource_name checked_name(std::string_view name) {
  if (name.empty() || name.size() > name_bytes_max || name.find('\0') != std::string_view::npos)
    throw misuse_error("a name must have 1 to 63 bytes, none of them zero: \"" +
                       std::string(name.substr(0, name_bytes_max)) + "\"");
  resource_name n;
  name.copy(n.text.data(), name.size());
  return n;
}

void refuse_type(const resource_name& name) {
  throw misuse_error("the name \"" + std::string(name.view()) + "\" stands for another type");
}

// Before anything is asked: on the name's home the call would be a plain one, on all others a fiber
// is refused.
messages::messenger& office_for_waits() {
  messages::messenger& office = office_of_names();
  require_stack();
  return office;
}

void publish_value(const resource_name& name, const published_value& v) {
  messages::messenger& office = office_for_waits();
  published_value known = v;
  known.found = true;
  if (known.publication == 0) known.publication = office.names.new_publication(this_worker().node);
  while (true) {
    const std::uint64_t has_it = call_home<enter_at_home>(name, known);
    if (has_it == known.publication) return;
    if (is_of_the_job(has_it))
      throw name_in_use_error("the name \"" + std::string(name.view()) +
                              "\" is taken: withdraw() it first, or choose another one");
    wait_for_news();
  }
}

published_value look_up(const resource_name& name, std::int64_t deadline_ns) {
  messages::directory& names = office_of_names().names;
  const std::string text(name.view());
  std::uint64_t epoch = 0;
  published_value v = names.recall(text, epoch);
  if (v.found && is_of_the_job(v.publication)) return v;
  require_stack();
  while (true) {
    v = ask_home(name, [&](const on_node& home) {
      return call<give_from_home>(home, name, node_id(), time_until(deadline_ns));
    });
    // Asked before it is remembered: if its publisher leaves in between, the epoch is another one
    // by then, or the name will be forgotten. Partner: directory::forget_those_of().
    if (v.found && is_of_the_job(v.publication)) break;
    if (deadline_now() >= deadline_ns) return {};
    // Its home is about to leave, and lets nobody wait there; or has not heard yet that the
    // publisher has left.
    wait_for_news();
  }
  names.remember(text, v, epoch);
  return v;
}

bool withdraw_value(const resource_name& name, std::uint64_t publication) {
  (void)office_for_waits();
  return call_home<withdraw_at_home>(name, publication);
}

}  // namespace detail

bool withdraw(std::string_view name) {
  return detail::withdraw_value(detail::checked_name(name), 0);
}

}  // namespace strata
