// SPDX-License-Identifier: Apache-2.0
// How the threads of a whole job become a group: all have begun, and have all that they need to be
// members, before anybody is told of anybody; and where one node cannot begin, none does.
#include "strata/run_group.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "messages/groups/member.hpp"
#include "messages/groups/with_patience.hpp"
#include "strata/detail/join.hpp"
#include "strata/detail/thread_core.hpp"
#include "strata/detail/thread_exit.hpp"
#include "strata/group.hpp"
#include "strata/semaphore.hpp"

namespace strata::detail {

// Where a member receives, and where what others say to it as a member does.
struct joining {
  endpoint_id own, in_group;
};

namespace {

// What the caller of run_group, its nodes and its threads say to each other, by tag.
constexpr message_tag joins = 1;   // node: its members
constexpr message_tag begins = 2;  // caller: all of them; none: it does not
constexpr message_tag over = 3;    // thread of the caller: a node whose call has ended

enum class ending : std::uint8_t { fine, by_another, by_itself };

ending ending_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const member_left_error&) {
    return ending::by_another;
  } catch (const remote_error& e) {
    return e.type_name() == "strata::member_left_error" ? ending::by_another : ending::by_itself;
  } catch (...) {
    return ending::by_itself;
  }
}

// The worst that has happened.
struct verdict {
  ending how = ending::fine;
  std::exception_ptr error;
  void add(const std::exception_ptr& e) {
    if (e == nullptr || ending_of(e) <= how) return;
    how = ending_of(e);
    error = e;
  }
  void rethrow() const {
    if (error != nullptr) std::rethrow_exception(error);
  }
};

// Once a node has joined others wait for what it says and hears.
using messages::with_patience;

std::vector<joining> list_in(const message& m) {
  std::vector<joining> list(m.content.size() / sizeof(joining));
  if (!list.empty()) std::memcpy(list.data(), m.content.data(), list.size() * sizeof(joining));
  return list;
}

std::shared_ptr<messages::roster> roster_of(const std::vector<joining>& list) {
  auto all = std::make_shared<messages::roster>();
  all->members.reserve(list.size());
  all->peers.reserve(list.size());
  for (const joining& one : list) {
    all->members.push_back(one.own);
    all->peers.push_back(one.in_group);
  }
  return all;
}

void be_member(group& g, const std::function<void(group&)>& body) {
  try {
    body(g);
  } catch (const thread_exit&) {  // as if it had returned
  } catch (const std::exception& e) {
    g.leave(e.what());
    throw;
  } catch (...) {
    g.leave("an exception that is no std::exception");
    throw;
  }
}

}  // namespace

// Each has its thread, and its endpoints, before anybody is told that it is there.
class crew {
 public:
  // Begins the threads, which wait for the list of all members. Throws if one of them is not to be
  // had, or its endpoints.
  crew(unsigned threads, const std::function<void(group&)>& body)
      : body_(body), mine_(threads), errors_(threads), missing_(threads) {
    try {
      for (unsigned i = 0; i < threads; ++i) {
        threads_.emplace_back(
            thread_attributes{.name = "thread " + std::to_string(i) + " of run_group()"},
            [this, i] { run(i); });
      }
      missing_.wait();
      rethrow();
    } catch (...) {
      end();
      throw;
    }
  }
  ~crew() { end(); }
  crew(const crew&) = delete;
  crew& operator=(const crew&) = delete;

  [[nodiscard]] const std::vector<joining>& members() const noexcept { return mine_; }
  // The list of all members, for a group, those of this crew side by side; none: there is no group.
  // Returns when the threads have ended. Rethrows: an error that was not caused by another one, if
  // there is one.
  void work(const std::vector<joining>& all) {
    if (!all.empty()) {
      all_ = with_patience([&] { return roster_of(all); });
      const auto first = std::ranges::find(all_->peers, mine_.front().in_group);
      first_rank_ = static_cast<unsigned>(first - all_->peers.begin());
    }
    end();
    rethrow();
  }

 private:
  void run(unsigned i) noexcept {
    std::unique_ptr<messages::member> me;
    try {
      me = messages::member::opened();
      mine_[i] = {this_thread::endpoint().id(), me->here()};
    } catch (...) {
      errors_[i] = std::current_exception();
    }
    missing_.count_down();
    told_.wait();
    if (all_ == nullptr) return;
    try {
      me->be_among(first_rank_ + i, all_);
      group g(std::move(me));
      be_member(g, body_);
    } catch (...) {
      errors_[i] = std::current_exception();
    }
  }
  void end() {
    if (threads_.empty()) return;
    told_.count_down();
    for (thread& t : threads_) t.join();
    threads_.clear();
  }
  void rethrow() const {
    verdict of_all;
    for (const std::exception_ptr& e : errors_) of_all.add(e);
    of_all.rethrow();
  }

  const std::function<void(group&)>& body_;
  std::vector<joining> mine_;
  std::vector<std::exception_ptr> errors_;
  std::shared_ptr<messages::roster> all_;  // null: there is no group
  unsigned first_rank_ = 0;
  latch missing_;  // those that are not in mine_ yet
  latch told_{1};
  std::vector<thread> threads_;
};

void run_members(endpoint_id home, unsigned threads, const std::function<void(group&)>& body) {
  endpoint mine;
  crew members(threads, body);
  mine.send(home, joins, bytes_of(members.members()));
  const message told = with_patience([&] { return mine.receive_message(home, begins); });
  members.work(with_patience([&] { return list_in(told); }));
}

// A node that has been called, and the thread here that hears how that ends: whoever waits for what
// a node says would wait for ever for one whose call cannot be made.
struct group_launch::called_node {
  explicit called_node(node_id_t n) : number(n) {}
  const node_id_t number;
  remote_thread call;  // none: it could not be called
  latch is_called{1};
  std::exception_ptr error;
  thread hears;
};

group_launch::group_launch(unsigned threads_per_node) : threads_(threads_per_node) {
  require_stack();
  if (threads_ == 0) throw misuse_error("run_group() of no threads");
}

group_launch::~group_launch() {
  try {
    meet(false);
  } catch (...) {  // a node is lost
  }
  for (const auto& node : nodes_) node->hears.join();
}

void group_launch::add(node_id_t number, const std::function<remote_thread()>& begin) {
  // Here, where who asks for too many members still hears so: once a node waits for the list, want
  // of memory for it is waited out, which may be for ever.
  list_.resize(list_.size() + threads_);
  called_node& node = *nodes_.emplace_back(std::make_unique<called_node>(number));
  try {
    node.hears = thread({.name = "run_group() for node " + std::to_string(number)},
                        [this, &node] { hear(node); });
  } catch (...) {
    nodes_.pop_back();
    throw;
  }
  const struct at_the_end {
    ~at_the_end() { is_called.count_down(); }
    latch& is_called;
  } goes_on{node.is_called};
  node.call = begin();
}

void group_launch::hear(called_node& node) noexcept {
  node.is_called.wait();
  try {
    if (node.call.joinable()) node.call.join();
  } catch (...) {
    node.error = std::current_exception();
  }
  if (have_met_.load(std::memory_order_relaxed)) return;
  try {
    with_patience([&] { home_.send_value(home_.id(), over, node.number); });
  } catch (const node_lost_error&) {  // who would receive it hears of that as well
  }
}

std::size_t group_launch::place_of(node_id_t number) const {
  const auto place =
      std::lower_bound(nodes_.begin(), nodes_.end(), number,
                       [](const auto& node, node_id_t n) { return node->number < n; });
  if (place == nodes_.end() || (*place)->number != number)
    throw error("node " + std::to_string(number) + " answers for a group that it is not in");
  return static_cast<std::size_t>(place - nodes_.begin());
}

void group_launch::meet(bool may_begin) {
  const std::size_t nodes = nodes_.size();
  auto has_spoken = with_patience([&] { return std::vector<bool>(nodes); });
  std::vector<endpoint_id> leads;
  with_patience([&] { leads.reserve(nodes); });  // each node joins once
  for (std::size_t missing = nodes; missing != 0;) {
    const message m = with_patience([&] { return home_.receive_message(); });
    node_id_t number = m.source.node();
    std::vector<joining> theirs;
    if (m.tag == over) {
      std::memcpy(&number, m.content.data(), sizeof number);
    } else {
      leads.push_back(m.source);
      theirs = with_patience([&] { return list_in(m); });
    }
    const std::size_t place = place_of(number);
    may_begin &= theirs.size() == threads_;
    if (theirs.size() == threads_) {
      std::copy(theirs.begin(), theirs.end(),
                list_.begin() + static_cast<std::ptrdiff_t>(place * threads_));
    }
    if (!has_spoken[place]) --missing;
    has_spoken[place] = true;
  }
  have_met_.store(true, std::memory_order_relaxed);
  if (!may_begin) list_.clear();
  for (const endpoint_id lead : leads) {
    try {
      with_patience([&] { home_.send(lead, begins, bytes_of(list_)); });
    } catch (const endpoint_closed_error&) {  // its call says why
    }
  }
}

void group_launch::finish() {
  verdict of_all;
  try {
    meet(true);
  } catch (...) {  // a node is lost, and every join says so
    of_all.add(std::current_exception());
  }
  for (const auto& node : nodes_) {
    node->hears.join();
    of_all.add(node->error);
  }
  nodes_.clear();
  of_all.rethrow();
}

}  // namespace strata::detail
