// SPDX-License-Identifier: Apache-2.0
// Who closes a circle of threads that wait for each other ends the program. Threads are told of
// before they wait: "holds" before its thread goes on, "waits" before it parks; and "holds" goes
// before the lock is free.
#include "strata/detail/deadlock.hpp"

#include <atomic>
#include <compare>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <vector>

#include "sched/scheduler.hpp"
#include "threads/after_fork.hpp"
#include "threads/lock_graph.hpp"
#include "threads/name_of.hpp"

namespace strata::detail {

constinit std::atomic<bool> locks_are_watched{false};

namespace {

// Who runs on a stack, or an OS thread. One that has ended is nobody who waits, whoever came after.
struct party {
  const stack* where = nullptr;  // null: an OS thread
  std::uint64_t life = 0;        // of all on the stack, or of all OS threads
  auto operator<=>(const party&) const = default;
};

struct graph : lock_graph<party> {
  std::mutex mutex;
};
graph& all() {
  static auto& one = *new graph;
  return one;
}

party caller() noexcept {
  if (const stack* const s = stack_of_task()) return {s, s->lives};
  static constinit std::atomic<std::uint64_t> begun{0};
  static thread_local const std::uint64_t mine = begun.fetch_add(1, std::memory_order_relaxed);
  return {nullptr, mine};
}

// Of somebody who waits.
std::string describe(const party& p) {
  return p.where != nullptr ? name_of(*p.where) : "an OS thread from outside the runtime";
}

[[noreturn]] void report(const std::vector<graph::link>& circle) {
  std::string lines;
  for (const graph::link& l : circle) {
    lines += "  " + describe(l.party) + " holds the mutex at " + hexadecimal(l.held) +
             " and waits for " +
             (l.wanted == l.held ? "it again" : "the one at " + hexadecimal(l.wanted)) + "\n";
  }
  const std::string text = "strata: deadlock: " +
                           (circle.size() == 1 ? "a thread waits for itself"
                                               : std::to_string(circle.size()) +
                                                     " threads wait for each other in a circle") +
                           "\n" + lines;
  std::fputs(text.c_str(), stderr);
  std::fflush(nullptr);
  std::_Exit(1);
}

}  // namespace

void hold_lock_graph() { all().mutex.lock(); }
void release_lock_graph() noexcept { all().mutex.unlock(); }

void lock_taken(const void* lock) noexcept {
  const uninterrupted mine;
  const std::lock_guard guard(all().mutex);
  all().take(lock, caller());
}

void lock_released(const void* lock) noexcept {
  const uninterrupted mine;
  const std::lock_guard guard(all().mutex);
  all().release(lock);
}

void lock_awaited(const void* lock) noexcept {
  const uninterrupted mine;
  graph& g = all();
  const party me = caller();
  const std::lock_guard guard(g.mutex);
  if (const auto circle = g.await(me, lock); !circle.empty()) report(circle);
}

void lock_no_longer_awaited() noexcept {
  const uninterrupted mine;
  const std::lock_guard guard(all().mutex);
  all().end_wait(caller());
}

}  // namespace strata::detail
