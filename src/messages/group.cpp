// SPDX-License-Identifier: Apache-2.0
// strata/group.hpp for the program: who is asked, and how a job's threads become a group.
#include "strata/group.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "messages/collectives.hpp"
#include "messages/member.hpp"
#include "strata/detail/thread_core.hpp"

namespace strata {

using messages::operation;

group::group(endpoint& mine, std::vector<endpoint_id> members)
    : me_(std::make_unique<messages::member>(mine, std::move(members))) {}
group::group(group&&) noexcept = default;
group& group::operator=(group&&) noexcept = default;
group::~group() = default;

unsigned group::rank() const noexcept { return me_->rank(); }
unsigned group::size() const noexcept { return me_->size(); }
std::span<const endpoint_id> group::members() const noexcept { return me_->members(); }
const group_traffic& group::traffic() const noexcept { return me_->traffic(); }
void group::leave(std::string_view why) noexcept { me_->leave(why); }

void group::barrier() {
  me_->perform(operation::barrier, 0, [&] { me_->meet(); });
}

void group::broadcast_bytes(std::span<std::byte> values, unsigned root) {
  me_->perform(operation::broadcast, root, [&] { messages::broadcast(*me_, values, root); });
}

void group::reduce_bytes(std::span<const std::byte> values, std::span<std::byte> result,
                         unsigned root, const detail::combination& op) {
  me_->perform(operation::reduce, root, [&] { messages::reduce(*me_, values, result, root, op); });
}

void group::all_reduce_bytes(std::span<std::byte> values, const detail::combination& op) {
  me_->perform(operation::all_reduce, 0, [&] { messages::all_reduce(*me_, values, op); });
}

void group::scan_bytes(std::span<std::byte> values, std::span<std::byte> before,
                       const detail::combination& op) {
  me_->perform(operation::scan, 0, [&] { messages::scan(*me_, values, before, op); });
}

void group::gather_bytes(std::span<const std::byte> values, std::span<std::byte> all,
                         unsigned root) {
  me_->perform(operation::gather, root, [&] { messages::gather(*me_, values, all, root); });
}

std::vector<std::vector<std::byte>> group::gather_any(std::span<const std::byte> bytes,
                                                      unsigned root) {
  std::vector<std::vector<std::byte>> all;
  me_->perform(operation::gather_any, root, [&] { all = messages::gather_any(*me_, bytes, root); });
  return all;
}

void group::all_gather_bytes(std::span<const std::byte> values, std::span<std::byte> all) {
  me_->perform(operation::all_gather, 0, [&] { messages::all_gather(*me_, values, all); });
}

void group::scatter_bytes(std::span<const std::byte> all, std::span<std::byte> values,
                          unsigned root) {
  me_->perform(operation::scatter, root, [&] { messages::scatter(*me_, all, values, root); });
}

void group::all_to_all_bytes(std::span<const std::byte> out, std::span<std::byte> in) {
  me_->perform(operation::all_to_all, 0, [&] { messages::all_to_all(*me_, out, in); });
}

// ---- a group of the whole job ----

namespace detail {
namespace {

// What a node and the caller of run_group say to each other, by tag.
constexpr message_tag joins = 1;   // node: the endpoints of its members; none: it could not
constexpr message_tag begins = 2;  // caller: all of them; none: it does not
constexpr message_tag ended = 3;   // node: an `ending`

enum class ending : std::uint8_t { fine, by_another, by_itself };

ending ending_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const member_left_error&) {
    return ending::by_another;
  } catch (...) {
    return ending::by_itself;
  }
}

// The worst that has happened.
struct verdict {
  ending how = ending::fine;
  std::exception_ptr error;
  void add(ending h, std::exception_ptr e) {
    if (h <= how) return;
    how = h;
    error = std::move(e);
  }
};

std::vector<endpoint_id> list_in(const message& m) {
  std::vector<endpoint_id> list(m.content.size() / sizeof(endpoint_id));
  if (!list.empty()) std::memcpy(list.data(), m.content.data(), list.size() * sizeof(endpoint_id));
  return list;
}

void be_member(endpoint& mine, std::vector<endpoint_id> all,
               const std::function<void(group&)>& body) {
  group g(mine, std::move(all));
  try {
    body(g);
  } catch (const std::exception& e) {
    g.leave(e.what());
    throw;
  } catch (...) {
    g.leave("an exception that is no std::exception");
    throw;
  }
}

}  // namespace

void run_members(endpoint_id home, unsigned threads, const std::function<void(group&)>& body) {
  endpoint mine;
  std::vector<endpoint> members;
  std::vector<endpoint_id> ids;
  try {
    for (unsigned i = 0; i < threads; ++i) ids.push_back(members.emplace_back().id());
  } catch (...) {
    mine.send(home, joins, std::span<const std::byte>());
    (void)mine.receive_message(home, begins);
    throw;
  }
  mine.send(home, joins, bytes_of(ids));
  const std::vector<endpoint_id> all = list_in(mine.receive_message(home, begins));
  if (all.empty()) return;
  std::vector<std::exception_ptr> errors(threads);
  {
    std::vector<thread> running;
    for (unsigned i = 0; i < threads; ++i) {
      running.emplace_back([&, i] {
        try {
          be_member(members[i], all, body);
        } catch (...) {
          errors[i] = std::current_exception();
        }
      });
    }
    for (thread& t : running) t.join();
  }
  verdict of_all;
  for (const std::exception_ptr& e : errors) {
    if (e != nullptr) of_all.add(ending_of(e), e);
  }
  mine.send_value(home, ended, of_all.how);
  if (of_all.error != nullptr) std::rethrow_exception(of_all.error);
}

group_launch::group_launch(unsigned threads_per_node) : threads_(threads_per_node) {
  if (threads_ == 0) throw misuse_error("run_group() of no threads");
}

// Not all nodes have been called: the others are sent away.
group_launch::~group_launch() {
  try {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      const message m = home_.receive_message(any_endpoint, joins);
      home_.send(m.source, begins, std::span<const std::byte>());
    }
  } catch (...) {  // a node is lost
  }
  for (remote_thread& t : nodes_) {
    try {
      t.join();
    } catch (...) {
    }
  }
}

std::size_t group_launch::place_of(node_id_t node) const {
  const auto place = std::lower_bound(numbers_.begin(), numbers_.end(), node);
  if (place == numbers_.end() || *place != node)
    throw error("node " + std::to_string(node) + " answers for a group that it is not in");
  return static_cast<std::size_t>(place - numbers_.begin());
}

void group_launch::finish() {
  std::vector<remote_thread> nodes = std::exchange(nodes_, {});
  verdict of_all;
  std::vector<ending> endings(nodes.size(), ending::by_itself);
  try {
    std::vector<endpoint_id> list(nodes.size() * threads_), leads;
    bool all_are_there = true;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const message m = home_.receive_message(any_endpoint, joins);
      leads.push_back(m.source);
      const std::size_t place = place_of(m.source.node());
      const std::vector<endpoint_id> theirs = list_in(m);
      all_are_there &= theirs.size() == threads_;
      if (theirs.size() == threads_)
        std::copy(theirs.begin(), theirs.end(),
                  list.begin() + static_cast<std::ptrdiff_t>(place * threads_));
    }
    if (!all_are_there) list.clear();
    for (const endpoint_id lead : leads) home_.send(lead, begins, bytes_of(list));
    for (std::size_t i = 0; i < (all_are_there ? nodes.size() : 0); ++i) {
      const message m = home_.receive_message(any_endpoint, ended);
      ending& theirs = endings[place_of(m.source.node())];
      std::memcpy(&theirs, m.content.data(), std::min(m.content.size(), sizeof(ending)));
    }
  } catch (...) {  // a node is lost, and every join says so
    of_all.add(ending::by_itself, std::current_exception());
  }
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    try {
      nodes[n].join();
    } catch (...) {
      of_all.add(endings[n], std::current_exception());
    }
  }
  if (of_all.error != nullptr) std::rethrow_exception(of_all.error);
}

}  // namespace detail

}  // namespace strata
