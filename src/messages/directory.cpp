// SPDX-License-Identifier: Apache-2.0
#include "messages/directory.hpp"

#include <chrono>

#include "cluster/words/codec.hpp"
#include "messages/messenger.hpp"
#include "strata/detail/deadline.hpp"

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
  withdrawn_.notify(UINT32_MAX);
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
  std::unique_lock lock(home_lock_);
  for (;;) {
    const auto [known, is_new] = home_.try_emplace(name, entry{v, {}});
    if (is_new) break;
    // Known already: whoever asks may ask again, because the home that took it left before it
    // answered.
    const std::uint64_t has_it = known->second.value.publication;
    if (!known->second.is_withdrawn || has_it == v.publication) return has_it;
    if (loss_ != nullptr) std::rethrow_exception(loss_);
    wait(withdrawn_, lock, strata::detail::parking::never);
  }
  if (const auto a = awaited_.find(name); a != awaited_.end()) a->second.entered.notify(UINT32_MAX);
  return v.publication;
}

published_value directory::give(const std::string& name, net::node_id asks,
                                std::int64_t deadline_ns) {
  const strata::detail::uninterrupted guard;
  std::unique_lock lock(home_lock_);
  auto found = home_.find(name);
  while (found == home_.end() || found->second.is_withdrawn) {
    if (loss_ != nullptr) std::rethrow_exception(loss_);
    if (is_leaving_ || strata::detail::deadline_now() >= deadline_ns) return {};
    wait_for_name(name, lock, deadline_ns);
    found = home_.find(name);
  }
  found->second.remembered_by.insert(asks);
  return found->second.value;
}

std::uint64_t directory::begin_to_withdraw(const std::string& name, std::uint64_t publication,
                                           std::set<net::node_id>& remembered_by) {
  const strata::detail::uninterrupted guard;
  const std::lock_guard lock(home_lock_);
  const auto found = home_.find(name);
  if (found == home_.end() || found->second.is_withdrawn) return 0;
  const std::uint64_t has_it = found->second.value.publication;
  if (publication != 0 && has_it != publication) return 0;
  remembered_by = std::move(found->second.remembered_by);
  found->second.is_withdrawn = true;
  return has_it;
}

void directory::end_withdrawal(const std::string& name, std::uint64_t publication) noexcept {
  const strata::detail::uninterrupted guard;
  const std::lock_guard lock(home_lock_);
  const auto found = home_.find(name);
  // Its publisher may have left meanwhile.
  if (found != home_.end() && found->second.value.publication == publication) home_.erase(found);
  withdrawn_.notify(UINT32_MAX);
}

std::string directory::describe_waits() {
  constexpr std::size_t shown_max = 20;
  std::size_t shown = 0;
  std::string text;
  const std::lock_guard lock(home_lock_);
  for (const auto& [name, a] : awaited_) {
    if (++shown > shown_max) break;
    text += "  nobody has published the name \"" + name + "\", for which " +
            std::to_string(a.waiters) +
            (a.waiters == 1 ? " thread or task waits\n" : " threads or tasks wait\n");
  }
  if (awaited_.size() > shown_max)
    text += "  and " + std::to_string(awaited_.size() - shown_max) + " more names\n";
  return text;
}

void directory::await_duty(const messenger& here, std::size_t hash) {
  const strata::detail::uninterrupted guard;
  std::unique_lock lock(home_lock_);
  while (here.home_of(hash) != strata::detail::this_worker().node) {
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
    if (e.is_withdrawn) continue;
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
