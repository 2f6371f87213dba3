// SPDX-License-Identifier: Apache-2.0
// Names for the program (strata/directory.hpp): they are published, looked up and withdrawn at
// their home, wherever that is when it answers.
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <new>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/words/retry_without_memory.hpp"
#include "messages/current_messenger.hpp"
#include "messages/directory.hpp"
#include "messages/messenger.hpp"
#include "strata/detail/deadline.hpp"
#include "strata/detail/join.hpp"
#include "strata/detail/thread_core.hpp"
#include "strata/directory.hpp"
#include "strata/error.hpp"
#include "strata/remote_thread.hpp"

namespace strata {
namespace detail {
namespace {

messages::messenger& messenger_of_names() {
  return messages::messenger_or_refusal(
      "a name can only be used within a runtime (runtime::run())");
}

std::size_t hash_of(const resource_name& name) {
  return std::hash<std::string_view>()(name.view());
}

on_node home_of(const resource_name& name) { return {messenger_of_names().home_of(hash_of(name))}; }

// ---- made on the name's home ----

messages::directory& names_at_home(const resource_name& name) {
  messages::messenger& messenger = messenger_of_names();
  messenger.names.await_duty(messenger, hash_of(name));
  return messenger.names;
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

// The name is withdrawn already: whoever remembered it from now on would do so for ever.
void forget_here(const resource_name& name) {
  cluster::retry_without_memory(
      [&] { messenger_of_names().names.forget(std::string(name.view())); },
      [] { this_thread::yield(); });
}

// All are told, whatever becomes of that: nobody else will; and all at once, as the one of them
// that computes may take long to answer.
void tell_to_forget(const resource_name& name, const std::set<net::node_id>& remembered_by) {
  std::exception_ptr first;
  const auto attempt = [&first](const auto& tell) {
    try {
      tell();
    } catch (const node_left_error&) {  // nobody remembers anything there
    } catch (...) {
      if (first == nullptr) first = std::current_exception();
    }
  };
  std::vector<remote_thread> calls;
  for (const net::node_id n : remembered_by) {
    const auto tell_and_wait = [&] { call<forget_here>(on_node{n}, name); };
    const auto begin_to_tell = [&] {
      try {
        calls.emplace_back(on_node{n}, call<forget_here>(name));
      } catch (const std::bad_alloc&) {  // none is left to tell it beside the others
        tell_and_wait();
      }
    };
    n == node_id() ? attempt(tell_and_wait) : attempt(begin_to_tell);
  }
  for (remote_thread& t : calls) attempt([&t] { t.join(); });
  if (first != nullptr) std::rethrow_exception(first);
}

bool withdraw_at_home(const resource_name& name, std::uint64_t publication) {
  messages::directory& names = names_at_home(name);
  const std::string text(name.view());
  std::set<net::node_id> remembered_by;
  const std::uint64_t withdrawn = names.begin_to_withdraw(text, publication, remembered_by);
  if (withdrawn == 0) return false;
  const struct at_the_end {
    ~at_the_end() { names.end_withdrawal(text, withdrawn); }
    messages::directory& names;
    const std::string& text;
    std::uint64_t withdrawn;
  } frees_the_name{names, text, withdrawn};
  tell_to_forget(name, remembered_by);
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
  return messenger_of_names().has(messages::directory::publisher_of(publication));
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
messages::messenger& messenger_for_waits() {
  messages::messenger& messenger = messenger_of_names();
  require_stack();
  return messenger;
}

void publish_value(const resource_name& name, const published_value& v) {
  messages::messenger& messenger = messenger_for_waits();
  published_value known = v;
  known.found = true;
  if (known.publication == 0)
    known.publication = messenger.names.new_publication(this_worker().node);
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
  messages::directory& names = messenger_of_names().names;
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
  (void)messenger_for_waits();
  return call_home<withdraw_at_home>(name, publication);
}

}  // namespace detail

bool withdraw(std::string_view name) {
  return detail::withdraw_value(detail::checked_name(name), 0);
}

}  // namespace strata
