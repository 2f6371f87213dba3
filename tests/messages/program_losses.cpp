// SPDX-License-Identifier: Apache-2.0
#include "program_losses.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "../common/require.hpp"
#include "program_support.hpp"
#include "strata/directory.hpp"
#include "strata/error.hpp"
#include "strata/message.hpp"
#include "strata/remote_thread.hpp"
#include "strata/resource.hpp"
#include "strata/semaphore.hpp"
#include "strata/synchronizers.hpp"
#include "strata/thread.hpp"

using namespace strata;
using test::counter;
using test::die;
using test::last_node;
using test::require;

void lost(runtime& rt) {
  try {
    rt.run([] {
      endpoint mine;
      std::array<std::byte, 8> buffer, more;
      transfer receives = mine.start_receive(buffer);
      transfer of_that_node = mine.start_receive(more, any_endpoint_on(last_node()));
      remote_thread(on_node{last_node()}, call<die>()).detach();
      try {
        receives.wait();
        require(false, "nobody sends");
      } catch (const node_lost_error& e) {
        require(e.node() == last_node(), "who is lost");
        for (const bool begins : {false, true}) {
          try {
            (begins ? mine.start_receive(buffer, any_endpoint_on(last_node()))
                    : std::move(of_that_node))
                .wait();
            require(false, "nobody of that node sends");
          } catch (const node_lost_error& again) {
            require(again.node() == last_node(), "who is lost, again");
          }
        }
        std::puts("told");
        throw;
      }
    });
  } catch (const node_lost_error&) {
  }
}

// Those who wait for each other within this node, and for names at home here and elsewhere, are
// told as well; an object that has a name ends as others do.
void lost_within(runtime& rt) {
  try {
    rt.run([] {
      endpoint mine;
      const named<counter> known("known", 0);
      std::atomic<unsigned> told{0};
      const auto await_loss = [&told](const auto& waits) {
        try {
          waits();
          require(false, "there is nothing");
        } catch (const node_lost_error&) {
          ++told;
        }
      };
      const std::vector<std::byte> large(std::size_t{1} << 20);
      thread sender([&] { await_loss([&] { endpoint().send(mine.id(), 1, large); }); });
      while (!mine.probe()) this_thread::yield();
      // Enough for each node to be the home of some.
      constexpr int names_awaited = 16;
      std::vector<thread> waiting;
      for (int i = 0; i < names_awaited; ++i) {
        waiting.emplace_back([&await_loss, name = "none " + std::to_string(i)] {
          await_loss([&] { (void)await_name<int>(name); });
        });
      }
      remote_thread(on_node{last_node()}, call<die>()).detach();
      sender.join();
      for (thread& t : waiting) t.join();
      require(told == 1 + names_awaited, "all are told");
      std::puts("told");
      await_loss([&] { (void)mine.receive_message(mine.id()); });
      throw misuse_error("leaves by an exception");
    });
  } catch (const misuse_error&) {
  }
}

// ---- locks ----

constexpr unsigned waiters_on_each = 4;
counting_semaphore<>* about_to_wait = nullptr;
void note_waiter() { about_to_wait->release(); }

std::string own_lock(node_id_t n) { return "lock of node " + std::to_string(n); }
// By the last node, which never gives it back.
void take_lock_of(node_id_t n) { lock_handle::await(own_lock(n)).lock(); }

// Whoever waits on a node for a lock of its own, of which another node has the lock, is told.
void wait_for_own_lock() {
  const std::string name = own_lock(node_id());
  const named<counting_semaphore<>> lock(name, 1);
  call<take_lock_of>(on_node{last_node()}, node_id());
  std::atomic<unsigned> told{0};
  std::vector<thread> waiting;
  for (unsigned i = 0; i < waiters_on_each; ++i) {
    waiting.emplace_back([&] {
      lock_handle mine = lock_handle::await(name);
      try {
        call<note_waiter>(on_node{0});  // whose answer may come too late
        mine.lock();
        require(false, "the last node has it");
      } catch (const node_lost_error& e) {
        // Node 0 may have ended before another one hears of either.
        require(e.node() == last_node() || node_id() != 0, "who is lost");
        ++told;
      }
      // Who is told goes on, and its node is there for as long as that takes, also when node 0 has
      // ended.
      for (int left = node_id() == 0 ? 0 : 10'000; left > 0; --left) {
        try {
          (void)find_name<int>(name);
          require(false, "it is of another type");
        } catch (const node_lost_error&) {
        } catch (const misuse_error&) {  // it is at home here
        }
        this_thread::yield();
      }
    });
  }
  for (thread& t : waiting) t.join();
  require(told == waiters_on_each, "all are told");
}

void lost_with_locks(runtime& rt) {
  try {
    rt.run([] {
      counting_semaphore<> waiters(0);
      about_to_wait = &waiters;
      const unsigned nodes_that_wait = last_node();
      std::vector<remote_thread> others;
      for (unsigned n = 1; n < nodes_that_wait; ++n)
        others.emplace_back(on_node{n}, call<wait_for_own_lock>());
      thread kills([&] {
        for (unsigned i = 0; i < nodes_that_wait * waiters_on_each; ++i) waiters.acquire();
        remote_thread(on_node{last_node()}, call<die>()).detach();
      });
      wait_for_own_lock();
      kills.join();
      for (remote_thread& t : others) {
        try {
          t.join();
          require(false, "its node ends without an answer");
        } catch (const node_lost_error&) {
        }
      }
      std::puts("told");
      throw misuse_error("leaves by an exception");
    });
  } catch (const misuse_error&) {
  }
}
