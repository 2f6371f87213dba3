// SPDX-License-Identifier: Apache-2.0
// The part of a worker that inlined code touches: where tasks are pushed and taken back, frames
// allocated, and how the calling code finds its worker.
#pragma once
#include <atomic>
#include <cstdint>

#include "strata/detail/frame_pool.hpp"
#include "strata/detail/overflow_list.hpp"
#include "strata/detail/ready_queue.hpp"
#include "strata/detail/split_deque.hpp"
#include "strata/detail/task.hpp"

namespace strata {
class threaded;
}

namespace strata::detail {

struct strand;

// Written by one worker, read by others for statistics only.
class counter {
 public:
  void add(std::uint64_t n = 1) noexcept {
    value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t read() const noexcept {
    return value_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<std::uint64_t> value_{0};
};

// What the program did on one worker. Plain events are counted where they happen; a fork whose
// child nobody stole is not counted, because counting would cost as much as forking (run with
// --strata-profile to count forks as well).
struct event_counters {
  counter forks;         // forks seen by the slow path: all of them when profiling
  counter spawns;        // task_scope::spawn
  counter tokens;        // TOKEN and INVOKE
  counter activations;   // threaded functions begun
  counter fibers;        // fibers run, initialization fibers not counted
  counter terminations;  // frames ended
  counter dispatched;    // tasks that began on a stack of their own
  counter steals;
  counter steals_lost;   // another thief or the owner was faster
  counter steals_empty;  // a victim had nothing to share
  counter forced;        // calls of force() that shared something
  counter suspensions;   // a stack waited
  counter resumptions;
  counter parks;
  counter preemptions;         // a thread was interrupted
  counter waived;              // ready tasks given away (policies rotator and locked)
  counter hops;                // ready tasks taken from other workers' queues, by any policy
  counter queue_locks;         // locks taken for that
  counter rescues;             // tasks taken from a worker that stood still (the same policies)
  counter read_modify_writes;  // atomic ones for that; see stats.hpp
  counter shares;              // the owner moved its split on request

  // Begun here less ended here: of all workers together, those that there are. Of use while nothing
  // moves.
  [[nodiscard]] std::int64_t frames() const noexcept {
    return static_cast<std::int64_t>(activations.read() - terminations.read());
  }
};

class scheduler;
class remote_nodes;

// Pointers in a deque carry a mark in their lowest bit when the task can travel to another node, so
// that whoever looks for such a task need not touch the others; and one in the next when it is not
// for shelves, since functions of the program make it into bytes, how many nobody knows before.
inline constexpr unsigned travelling_mark = 1, unshelved_mark = 2;
inline task* marked_as_travelling(task* t, unsigned mark) noexcept {
  return reinterpret_cast<task*>(reinterpret_cast<std::uintptr_t>(t) + mark);
}
inline unsigned mark_of(const task* marked) noexcept {
  return reinterpret_cast<std::uintptr_t>(marked) & (travelling_mark | unshelved_mark);
}
inline bool can_travel(const task* marked) noexcept {
  return (mark_of(marked) & travelling_mark) != 0;
}
inline bool can_be_shelved(const task* marked) noexcept {
  return mark_of(marked) == travelling_mark;
}
inline task* unmarked(task* t) noexcept {
  return reinterpret_cast<task*>(reinterpret_cast<std::uintptr_t>(t) &
                                 ~std::uintptr_t{travelling_mark | unshelved_mark});
}

class worker {
 public:
  // A fork at or below this stack address goes the slow way. On a task's stack: its last safe
  // address; everywhere else (the worker's own stack, where fibers run; outside the runtime; while
  // profiling): the highest address there is.
  std::uintptr_t stack_limit = UINTPTR_MAX;
  std::uint16_t node = 0;
  bool profiling = false;
  // A preemptible thread runs here, and is not in a section of the runtime.
  std::atomic<bool> preemptible{false};
  bool has_neighbours = false;  // other workers of this runtime
  bool is_held = false;         // what runs here keeps the worker: see class held_worker
  unsigned id = 0;
  // Nobody else in this process has it meanwhile: see held_worker::number(). 0: has none.
  unsigned number = 0;
  scheduler* owner = nullptr;  // null only in the worker that stands for "none"
  // Node numbers given out so far; grows where nodes come to a running job. Relaxed: who needs to
  // know of one that comes has heard of it in another way.
  std::atomic<std::uint16_t> nodes{1};
  remote_nodes* others = nullptr;  // null in a job of one node
  const std::atomic<bool>* failed =
      nullptr;                // the computation has failed: tokens and fibers are given up
  threaded* ended = nullptr;  // frame that the running fiber has terminated
  const char* (*running)() =
      nullptr;  // name of the fiber that runs on this worker's own stack, for error messages
  // Profiling only.
  strand* current_strand = nullptr;  // what is being measured on this worker's current stack
  bool path_open = false;            // a fiber is being measured
  std::uint64_t path_before = 0;     // length of the chain that led to it, in ticks
  std::uint64_t path_since = 0;      // when it began
  counter fiber_ticks;               // spent in fibers

  split_deque<task> deque;
  overflow_list overflow;  // those that found the deque full
  ready_queue ready;
  frame_pool frames;
  event_counters events;

  explicit worker(frame_depot& depot) : frames(depot) {}
  worker(const worker&) = delete;
  worker& operator=(const worker&) = delete;

  // Makes a task available to this worker first, and to thieves when they ask; with
  // marked_as_travelling() to thieves on other nodes as well.
  void push(task* t) {
    if (deque.push(deque.next(), t) && !tend()) [[unlikely]]
      overflow.push(t);
  }

  // Runs t soon. The first goes to the owner-bound queue; what does not fit there at once may as
  // well be stolen.
  void enable(task* t) {
    if (ready.empty()) {
      ready.push(t);
    } else {
      push(t);
    }
  }

  // After a push that asks for it: shares work and wakes a sleeper. False when the deque was full
  // and the item was taken back.
  bool tend();

  // The newest task of the deque or, once that is empty, of the overflow list. Null when there is
  // none.
  [[nodiscard]] task* pop() {
    task* t = deque.pop();
    if (t == nullptr && !overflow.empty()) [[unlikely]]
      t = pop_overflow();
    return unmarked(t);
  }
  task* pop_overflow();

  // After a pop, before what was popped begins: who asks gets half of the rest, as at a push. Many
  // tasks in a row may push nothing. For this node's workers: a token that is tiny runs sooner than
  // it is with another node, which sends a message for what it wants.
  void share_if_asked() {
    if (has_neighbours && deque.owes()) [[unlikely]]
      (void)tend();
  }
};

// Stands for "not a worker": every fork through it takes the slow way, which says what is wrong.
extern worker& no_worker;

#if defined(__x86_64__) && !defined(STRATA_TSAN) && !defined(STRATA_ASAN)
#define STRATA_ASM_TLS 1
#endif

extern "C" {
// The only global state: which worker runs on this OS thread. Never null after static
// initialisation of the thread.
extern thread_local constinit worker* strata_current_worker
    __attribute__((tls_model("initial-exec")));
}

// The worker of the calling OS thread, read anew at every call. A task can continue on another OS
// thread after anything that may suspend, so neither the value nor the address of the thread-local
// may be kept by the compiler; hence the assembly.
inline worker& this_worker() noexcept {
#if defined(STRATA_ASM_TLS)
  worker* w;
  asm volatile(
      "movq strata_current_worker@gottpoff(%%rip), %0\n\t"
      "movq %%fs:(%0), %0"
      : "=r"(w));
  return *w;
#else
  worker& this_worker_out_of_line() noexcept;
  return this_worker_out_of_line();
#endif
}

// A section of the runtime in which a preemptible thread must not be interrupted. It may be
// suspended and go on on another worker.
class uninterrupted {
 public:
  uninterrupted() noexcept {
    worker& w = this_worker();
    was_ = w.preemptible.load(std::memory_order_relaxed);
    if (was_) [[unlikely]] {
      w.preemptible.store(false, std::memory_order_relaxed);
      // The signal handler runs on this very thread. Partner: on_tick().
      std::atomic_signal_fence(std::memory_order_seq_cst);
    }
  }
  ~uninterrupted() {
    if (was_) [[unlikely]] {
      std::atomic_signal_fence(std::memory_order_seq_cst);
      this_worker().preemptible.store(true, std::memory_order_relaxed);
    }
  }
  uninterrupted(const uninterrupted&) = delete;
  uninterrupted& operator=(const uninterrupted&) = delete;

 private:
  bool was_;
};

// The calling OS thread's number outside all workers. Made at its first call, kept until it ends.
[[nodiscard]] unsigned number_outside();

// A section in which the caller keeps its worker: there a fork or a wait throws misuse_error as in
// a fiber, and a preemptible thread is not interrupted. Outside a runtime nobody else could run on
// the caller's OS thread, and nothing is refused.
class held_worker {
 public:
  held_worker() noexcept
      : worker_(this_worker()), was_held_(worker_.is_held), limit_(worker_.stack_limit) {
    if (worker_.number == 0) [[unlikely]]
      return;  // there is but one "none", and others read it
    worker_.is_held = true;
    worker_.stack_limit = UINTPTR_MAX;  // every fork takes the slow way
  }
  ~held_worker() {
    if (worker_.number == 0) [[unlikely]]
      return;
    worker_.stack_limit = limit_;
    worker_.is_held = was_held_;
  }
  held_worker(const held_worker&) = delete;
  held_worker& operator=(const held_worker&) = delete;

  // From 1 on. While the section lasts, nobody else in this process has it. Who has it afterwards
  // sees what was done here.
  [[nodiscard]] unsigned number() const {
    return worker_.number != 0 ? worker_.number : number_outside();
  }

 private:
  const uninterrupted guard_;  // before the worker is looked up: until then it may change
  worker& worker_;
  const bool was_held_;
  const std::uintptr_t limit_;
};

}  // namespace strata::detail
