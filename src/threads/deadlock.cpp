// SPDX-License-Identifier: Apache-2.0
// A graph of threads and locks: each lock has at most one holder, each thread waits for at most one
// lock, so a circle is found by following the only path there is. Whoever closes one finds it,
// because edges are added before waiting: "holds" before its thread goes on, "waits" before it
// parks; and "holds" goes before the lock is free.
#include "strata/detail/deadlock.hpp"

#include <atomic>
#include <compare>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>

#include "sched/scheduler.hpp"
#include "threads/after_fork.hpp"
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

struct graph {
  std::mutex mutex;
  std::unordered_map<const void*, party> holder;  // of a lock
  std::map<party, const void*> waits_for;         // a lock
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

[[noreturn]] void report(const graph& g, const party& first, const void* lock) {
  std::string lines;
  std::size_t threads = 0;
  const void* held = nullptr;
  party p = first;
  const void* wanted = lock;
  // The caller holds what the last of them waits for.
  do {
    held = wanted;
    p = g.holder.at(wanted);
    wanted = p == first ? lock : g.waits_for.at(p);
    lines += "  " + describe(p) + " holds the mutex at " + hexadecimal(held) + " and waits for " +
             (wanted == held ? "it again" : "the one at " + hexadecimal(wanted)) + "\n";
    ++threads;
  } while (p != first);
  const std::string text =
      "strata: deadlock: " +
      (threads == 1 ? "a thread waits for itself"
                    : std::to_string(threads) + " threads wait for each other in a circle") +
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
  all().holder[lock] = caller();
}

void lock_released(const void* lock) noexcept {
  const uninterrupted mine;
  const std::lock_guard guard(all().mutex);
  all().holder.erase(lock);
}

void lock_awaited(const void* lock) noexcept {
  const uninterrupted mine;
  graph& g = all();
  const party me = caller();
  const std::lock_guard guard(g.mutex);
  g.waits_for[me] = lock;
  const void* wanted = lock;
  for (std::size_t i = 0; i <= g.waits_for.size(); ++i) {
    const auto held = g.holder.find(wanted);
    if (held == g.holder.end()) return;
    if (held->second == me) report(g, me, lock);
    const auto next = g.waits_for.find(held->second);
    if (next == g.waits_for.end()) return;
    wanted = next->second;
  }
}

void lock_no_longer_awaited() noexcept {
  const uninterrupted mine;
  const std::lock_guard guard(all().mutex);
  all().waits_for.erase(caller());
}

}  // namespace strata::detail
