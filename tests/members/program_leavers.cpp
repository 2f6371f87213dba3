// SPDX-License-Identifier: Apache-2.0
#include "tests/members/program_leavers.hpp"

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "strata/domain.hpp"
#include "strata/error.hpp"
#include "strata/fiber.hpp"
#include "strata/membership.hpp"
#include "strata/message.hpp"
#include "strata/remote_thread.hpp"
#include "strata/resource.hpp"
#include "strata/serialize.hpp"
#include "strata/slot.hpp"
#include "strata/thread.hpp"
#include "tests/common/require.hpp"
#include "tests/common/say.hpp"

namespace {

using namespace strata;
using test::require;
using test::say;

// Enough for each node to be the home of some.
constexpr int left_behind = 32;
std::string name_left(int i) { return "left behind " + std::to_string(i); }

struct visitors_book {
  int visits = 0;
  int visit() { return ++visits; }
};
// Ends with the process only, when there is no runtime any more.
std::unique_ptr<named<visitors_book>> book;

// On the node that leaves. Nothing of it keeps the node from leaving.
void leave_all_behind() {
  for (int i = 0; i < left_behind; ++i) publish(name_left(i), i);
  book = std::make_unique<named<visitors_book>>("book");
  const endpoint ends;
  require(domain_handle::await("domain").join(ends.id()) == 1, "the second rank");
}

void find_others() {
  for (int i = 0; i < left_behind; ++i)
    require(find_name<int>(name_left(i)) == -i, "names that are another node's now");
  require(domain_handle::await("domain").size() == 2, "who is a member");
}

// Until it has left, and this node knows.
void await_end_of(node_id_t n) {
  try {
    (void)endpoint().receive_message(any_endpoint_on(n));
    require(false, "nobody sends");
  } catch (const node_left_error&) {
  }
}

// Nobody signals it again.
struct waits_in_vain : threaded {
  slot_ptr begun;
  void start() { sync(begun); }
  void go_on() { terminate(); }
  fiber<&waits_in_vain::go_on> GO_ON{this, 1};
};
struct throws_there : threaded {
  void start() { throw error("no such place"); }
};

// Its first copy takes until node 1 has left.
std::atomic<bool> is_to_wait{false};
struct copied_late {
  copied_late() = default;
  copied_late(const copied_late&) {
    if (!is_to_wait.exchange(false)) return;
    say("begins");
    await_end_of(1);
  }
  template <class Archive>
  void serialize(Archive&) {}
};
std::atomic<int> calls_here{0};
int count_calls() { return calls_here; }

}  // namespace

void leave_between(runtime& rt) {
  rt.run([] {
    try {
      is_to_wait = true;
      on_every_node([](const copied_late&) { ++calls_here; }, copied_late());
      require(false, "a call on a node that has left");
    } catch (const node_left_error& e) {
      require(e.node() == 1, "which node");
    }
    require(calls_here == 1, "the call on the own node");
    require(call<count_calls>(on_node{2}) == 1, "a call on a node behind the one that has left");
  });
}

void leave_frames(runtime& rt) {
  try {
    rt.run([] {
      completion begun, never;
      invoke<waits_in_vain>(on_node{1}, begun.sptr());
      begun.wait();
      invoke<throws_there>(on_node{1});
      never.wait();
    });
    require(false, "waited for nothing");
  } catch (const remote_error& e) {
    require(e.message() == "no such place", e.what());
  }
  rt.run([] {
    say("failed");
    await_end_of(1);
  });
}

void leave_behind(runtime& rt) {
  rt.run([] {
    named<domain> members_known("domain");
    endpoint mine, other;
    require(members_known->join(mine.id()) == 0, "the first rank");
    call<leave_all_behind>(on_node{1});
    for (int i = 0; i < left_behind; ++i)
      require(find_name<int>(name_left(i)) == i, "names of the leaver");
    const auto found = resource<visitors_book>::find("book");
    require(found.call<&visitors_book::visit>() == 1, "an object of the leaver");
    require(members_known->size() == 2, "both are members");
    say("left behind");
    await_end_of(1);
    for (int i = 0; i < left_behind; ++i)
      require(!find_name<int>(name_left(i)), "the leaver took its names along");
    require(!find_name<resource<visitors_book>>("book"), "that of its object, too");
    try {
      (void)found.call<&visitors_book::visit>();
      require(false, "an object of a node that has left");
    } catch (const node_lost_error& e) {
      require(e.node() == 1, "where it was");
    }
    require(members_known->size() == 1, "who has left is no member");
    require(members_known->members_from(0).ranks == 1, "nor has a rank");
    require(members_known->join(other.id()) == 1, "which is free");
    // The names are, too, wherever they are at home.
    for (int i = 0; i < left_behind; ++i) publish(name_left(i), -i);
    const named<visitors_book> another("book");
    for (auto all = members(); !is_member(2); all = await_members_other_than(all)) {
    }
    call<find_others>(on_node{2});
    require(resource<visitors_book>::find("book").call<&visitors_book::visit>() == 1,
            "another object");
  });
}
