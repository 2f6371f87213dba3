// SPDX-License-Identifier: Apache-2.0
// Waiting until somebody says so, at an address: a futex for lightweight threads. What waits is
// queued in a table of the process under the address alone, so a mutex is one word, costs nothing
// while nobody waits, needs no constructor, and may be destroyed by whoever locks it next, although
// the one who unlocked it is still about to wake somebody. Source of the idea: F. Pizlo, "Locking
// in WebKit", 2016; of its interface: U. Drepper, "Futexes are tricky", 2011.
//
// A waiter on a stack of a runtime gives up its stack, and its worker does other work; a thread
// from outside blocks.
#pragma once
#include <cstdint>

namespace strata::detail {

enum class unparked : std::uint32_t {
  woken = 1,
  timed_out,
  interrupted,  // by interrupt()
  refused,      // the condition did not hold: never waited
  signalled,    // a signal for the waiter, whose handler has run
};

struct waiter;

// Who waits here, if anybody: for who wakes one of many without a look at the others. With the lock
// of the address's queue; who waits with one is not moved to another address.
struct parked_place {
  waiter* here = nullptr;
};

struct parking {
  // For people: what this is a wait for, for example "mutex".
  const char* what;
  const void* address;
  // Asked with the address's queue locked: waits only while it is true. Must be short and must not
  // park or unpark.
  bool (*still)(void*) = nullptr;
  // Done once the waiter can be found, on no particular stack: unlocks a mutex, for example.
  void (*then)(void*) = nullptr;
  // Done in place of a waiter that goes no further, since its runtime ends, by whoever ends that,
  // with no lock held and the waiter's stack still there: whatever others would find of it goes.
  void (*forgotten)(void*) noexcept = nullptr;
  void* argument = nullptr;          // of `still` and `forgotten`
  void* then_argument = nullptr;     // of `then`
  std::int64_t deadline_ns = never;  // on the monotonic clock
  // Where the end is on a clock that can be set: asked when deadline_ns has come, and says until
  // when to wait before it is asked again; what has passed ends the wait. By whom, and with which
  // locks, is not known: it is short, takes none and needs no memory. Null: deadline_ns is the end.
  std::int64_t (*look_again)(const void*) noexcept = nullptr;
  const void* look_again_argument = nullptr;
  bool interruptible = false;  // interrupt() ends it
  // Nor does what ends waits that are not (asynchronous cancellation): what goes on meanwhile uses
  // the waiter's stack.
  bool lasts = false;
  // The same where the waiter is noexcept.
  bool is_not_left = false;
  bool ends_by_signal = false;       // also from outside, where only interruptible waits do so
  std::uint32_t kinds = every_kind;  // a bit each: unpark() of one of them wakes it
  parked_place* place = nullptr;     // where unpark_at() finds it
  // Of a caller that may come back here when its time has passed: when it came first, and then
  // it goes before those who came later; 0: now, which is put there. Null: it does not come back.
  std::uint64_t* came = nullptr;

  static constexpr std::int64_t never = INT64_MAX;
  static constexpr std::uint32_t every_kind = UINT32_MAX;
};

// Waits. May return on another OS thread. What the waker did before is visible. Throws misuse_error
// in a fiber, and what says that there is no memory or no thread for a deadline; then it has not
// waited, nor done `then`. `signalled` is possible for threads of pthread.h alone, and from outside
// in waits that are interruptible or end by signals: who waits for a condition looks again.
unparked park(const parking& how);

// Wakes at most `count` of those that wait at `address` and are of one of `kinds`, who has waited
// longest first; returns how many.
unsigned unpark(const void* address, unsigned count,
                std::uint32_t kinds = parking::every_kind) noexcept;
// Wakes who waits at `address` with that place, if anybody does. The place exists until it returns.
void unpark_at(const void* address, const parked_place& place) noexcept;
// Wakes the one that has waited longest; true if there was one. If not, calls `otherwise(argument)`
// with the address's queue locked: nobody begins to wait there meanwhile.
bool unpark_one_or(const void* address, void (*otherwise)(void*), void* argument) noexcept;
// Calls f(argument) with the address's queue locked if nobody waits there.
void unless_awaited(const void* address, void (*f)(void*), void* argument) noexcept;
// Wakes the first of those who wait at `from` if `wake_first`, and lets the others wait at `to`
// instead, at most `count` in all. Returns how many there were.
unsigned unpark_requeue(const void* from, const void* to, bool wake_first, unsigned count) noexcept;

}  // namespace strata::detail
