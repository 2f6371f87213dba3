// SPDX-License-Identifier: Apache-2.0
// A graph of threads and locks: each lock has at most one holder, each thread waits for at most one
// lock, so a circle is found by following the only path there is. Whoever closes one finds it,
// because edges are added before waiting: "holds" before its thread goes on, "waits" before it
// parks; and "holds" goes before the lock is free.
#include "strata/detail/deadlock.hpp"

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <unordered_map>

#include "sched/scheduler.hpp"
#include "threads/after_fork.hpp"
#include "threads/name_of.hpp"

namespace strata::detail {

constinit std::atomic<bool> locks_are_watched{false};

namespace {

// A stack, or something that belongs to an OS thread.
struct party {
  const void* who = nullptr;
  bool is_stack = false;
};

struct graph {
  std::mutex mutex;
  std::unordered_map<const void*, party> holder;           // of a lock
  std::unordered_map<const void*, const void*> waits_for;  // a lock, of a party
};
graph& all() {
  static auto& one = *new graph;
  return one;
}

party caller() noexcept {
  const worker& w = this_worker();
  if (w.owner != nullptr) {
    if (const stack* const s = static_cast<const place&>(w).current) return {s, true};
  }
  static thread_local const char here = 0;
  return {&here, false};
}

// Of somebody who waits.
std::string describe(const party& p) {
  if (!p.is_stack) return "an OS thread from outside the runtime";
  return name_of(*static_cast<const stack*>(p.who));
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
    wanted = p.who == first.who ? lock : g.waits_for.at(p.who);
    lines += "  " + describe(p) + " holds the mutex at " + hexadecimal(held) + " and waits for " +
             (wanted == held ? "it again" : "the one at " + hexadecimal(wanted)) + "\n";
    ++threads;
  } while (p.who != first.who);
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
  const std::lock_guard guard(all().mutex);
  all().holder[lock] = caller();
}

void lock_released(const void* lock) noexcept {
  const std::lock_guard guard(all().mutex);
  all().holder.erase(lock);
}

void lock_awaited(const void* lock) noexcept {
  graph& g = all();
  const party me = caller();
  const std::lock_guard guard(g.mutex);
  g.waits_for[me.who] = lock;
  const void* wanted = lock;
  for (std::size_t i = 0; i <= g.waits_for.size(); ++i) {
    const auto held = g.holder.find(wanted);
    if (held == g.holder.end()) return;
    if (held->second.who == me.who) report(g, me, lock);
    const auto next = g.waits_for.find(held->second.who);
    if (next == g.waits_for.end()) return;
    wanted = next->second;
  }
}

void lock_no_longer_awaited() noexcept {
  const std::lock_guard guard(all().mutex);
  all().waits_for.erase(caller().who);
}

}  // namespace strata::detail
