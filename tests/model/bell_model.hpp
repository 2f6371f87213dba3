// SPDX-License-Identifier: Apache-2.0
// The bell of the taker of signals: some ring, signals of the program come, it sleeps and looks as
// run() in pthread/signal_taker.cpp does. The kernel's signals are steps that order no memory.
//
// A ring that is missed leaves it asleep for ever, a deadlock, which Relacy reports.
#pragma once
#include "explore.hpp"
#include "mutations.hpp"
//
#include <atomic>
#include <cstdint>
#include <utility>

#include "pthread/basic_bell.hpp"

namespace strata::model {

struct signal_info {
  int number = 0;
  bool is_ours = false;
};

// What is pending for the sleeper. Between two switches of Relacy's nothing else runs.
struct bell_kernel {
  using set_type = unsigned;  // bits
  using info_type = signal_info;
  using thread_type = int;
  static constexpr int ring_number = 1, other_number = 2;

  bool has_ring = false;  // sent to the thread
  unsigned pending = 0;   // sent to the process, as bits
  bool has_thrown_away = false;
  bool is_ever_interrupted = true;  // where schedules are random: else there would be no end
  unsigned times_asleep = 0;
  unsigned times_expected = 0;  // a ring, by who was awake
  unsigned handled = 0;         // by the sleeper
  rl::waitset<1> sleeping;
  rl::waitset<1> waiting;

  int may_not_ring = -1;  // the thread that it is
  static int note_caller() { return 1; }
  bool can_ring(int) const { return may_not_ring != static_cast<int>(rl::thread_index()); }
  void send_ring(int to, const code_place& at = {}) {
    rl::ctx().sched();
    RL_ASSERT(to == note_caller());
    if (!bell_kernel::can_ring(to)) return;
    has_ring = true;
    sleeping.unpark_all(rl::ctx(), at.info);
  }
  int await(unsigned set, signal_info& info, const code_place& at = {}) {
    const bool is_interrupted = is_ever_interrupted && rl::ctx().is_random_sched();
    return take_or_wait(set | bit(ring_number), info, is_interrupted, at);
  }
  int await_ring(signal_info& info, const code_place& at = {}) {
    ++times_expected;
    if (!has_thrown_away) return take_or_wait(bit(ring_number), info, false, at);
    rl::ctx().sched();
    return take(bit(ring_number), info);
  }
  int look(unsigned set, signal_info& info) {
    rl::ctx().sched();
    return take(set, info);
  }
  static bool is_ring(const signal_info& info) { return info.is_ours; }

  // By the program.
  void send(int number, const code_place& at = {}) {
    rl::ctx().sched();
    pending |= bit(number);
    sleeping.unpark_all(rl::ctx(), at.info);
  }
  // As sigaction() does that ignores it: who is about to take it finds it gone.
  void throw_away() {
    rl::ctx().sched();
    has_thrown_away = has_thrown_away || has_ring;
    has_ring = false;
  }

  // A program that waits until its first signal has been handled.
  void has_been_handled(const code_place& at = {}) {
    rl::ctx().sched();
    ++handled;
    waiting.unpark_all(rl::ctx(), at.info);
  }
  void await_handled(const code_place& at = {}) {
    rl::ctx().sched();
    const bool timed = false, spurious = false, switch_to_woken = false;
    if (handled == 0) waiting.park_current(rl::ctx(), timed, spurious, switch_to_woken, at.info);
  }

  static constexpr unsigned bit(int number) { return 1U << number; }

 private:
  int take(unsigned set, signal_info& info) {
    for (const int number : {ring_number, other_number}) {
      if ((set & bit(number)) == 0) continue;
      info = {number, number == ring_number && has_ring};
      if (info.is_ours) {
        has_ring = false;
        return number;
      }
      if ((pending & bit(number)) == 0) continue;
      pending &= ~bit(number);
      return number;
    }
    return -1;
  }
  int take_or_wait(unsigned set, signal_info& info, bool is_interrupted, const code_place& at) {
    rl::ctx().sched();
    const int now = take(set, info);
    if (now > 0) return now;
    ++times_asleep;
    const bool timed = false, switch_to_woken = false;
    sleeping.park_current(rl::ctx(), timed, is_interrupted, switch_to_woken, at.info);
    return take(set, info);
  }
};

// Mutation: what has the ring's number is a ring.
struct bell_kernel_without_mark : bell_kernel {
  static bool is_ring(const signal_info& info) { return info.number == ring_number; }
};

// Mutation: who may not ring calls the sleeper all the same.
struct bell_kernel_that_is_not_asked : bell_kernel {
  static bool can_ring(int) { return true; }
};

// Mutation: who rings stores.
template <class T>
class ringing_by_store_atomic : public model_atomic<T> {
  using order = std::memory_order;

 public:
  using model_atomic<T>::model_atomic;

  T exchange(T value, order o, const code_place& at = {}) {
    if (value == T{}) return model_atomic<T>::exchange(value, o, at);
    this->store(value, o, at);
    return value;
  }
};

// Mutation: a store is on its way until after the next exchange, as orders allow that are weaker
// than seq_cst.
struct late_store {
  inline static late_store* on_its_way = nullptr;
  virtual void arrive(const code_place& at) = 0;

 protected:
  ~late_store() = default;
};

template <class T>
class late_atomic final : public model_atomic<T>, late_store {
  using order = std::memory_order;

 public:
  using model_atomic<T>::model_atomic;

  void store(T value, order o, const code_place& at = {}) {
    if (o != order::seq_cst) return model_atomic<T>::store(value, o, at);
    value_ = value;
    on_its_way = this;
  }
  T exchange(T value, order o, const code_place& at = {}) {
    const T before = model_atomic<T>::exchange(value, o, at);
    if (late_store* const late = std::exchange(on_its_way, nullptr)) late->arrive(at);
    return before;
  }

 private:
  void arrive(const code_place& at) override { model_atomic<T>::store(value_, order::relaxed, at); }

  T value_{};
};

// Mutation: who sees that the value was the expected one changes it later.
template <class T>
class late_change_atomic : public model_atomic<T> {
  using order = std::memory_order;

 public:
  using model_atomic<T>::model_atomic;

  bool compare_exchange_strong(T& expected, T value, order, order, const code_place& at = {}) {
    const T now = this->load(order::acquire, at);
    if (now != expected) {
      expected = now;
      return false;
    }
    this->store(value, order::seq_cst, at);
    return true;
  }
};

template <class Kernel, template <class> class Atomic>
struct model_bell : detail::posix::basic_bell<Kernel, Atomic> {
  Kernel& signals() { return this->kernel(); }
};

// What happens beside the rings of threads 1 and 2; thread 0 sleeps, thread 3 is the program.
enum class beside {
  signals,            // one by the ring's number, and another
  throws_rings_away,  // the program ignores the ring's number, and rings as it has to
  throws_rings_away_and_rings_once,  // mutation: as everybody else does
  may_not_ring,                      // and tries to
};

// Each ring is heard, with what was done before; and each signal of the program comes to the
// sleeper once.
template <beside Beside, template <class> class Atomic = model_atomic, class Kernel = bell_kernel>
struct bell_heard : rl::test_suite<bell_heard<Beside, Atomic, Kernel>, 4> {
  static constexpr unsigned ringers = 2;
  static constexpr unsigned to_come = Beside == beside::signals ? 2 : 0;
  inline static struct { unsigned asleep = 0, expected = 0; } reached;

  model_bell<Kernel, Atomic> bell;
  // What those who ring had done. Not weakened, and relaxed: it is not the bell's.
  model_atomic<int> done[ringers + 1];
  unsigned heard = 0;
  unsigned signals_come[3] = {};

  bell_heard() {
    late_store::on_its_way = nullptr;
    if (Beside == beside::may_not_ring) bell.signals().may_not_ring = ringers + 1;
    bell.begin();
  }

  void work() {
    for (unsigned i = 0; i < ringers + 1; ++i) {
      if (done[i].load(std::memory_order_relaxed) != 0) heard |= 1U << i;
    }
  }
  void take_up(const signal_info& info) {
    RL_ASSERT(!info.is_ours);
    ++signals_come[info.number];
    if (info.number == Kernel::ring_number) bell.quieten();
  }
  bool is_over() const {
    const bool rings_too = Beside != beside::signals && Beside != beside::may_not_ring;
    const unsigned all = rings_too ? 0b111 : 0b11;
    return heard == all && signals_come[1] + signals_come[2] == to_come;
  }

  void sleeper() {
    const unsigned set = Kernel::bit(Kernel::other_number);
    while (!is_over()) {
      signal_info info;
      if (bell.sleep(set, info) != 0) {
        take_up(info);
        continue;
      }
      work();
      while (bell.look(set, info) != 0) {
        take_up(info);
        if (bell.has_rung()) work();
      }
    }
  }
  void program() {
    if (Beside == beside::signals) {
      bell.signals().send(Kernel::ring_number);
      bell.signals().send(Kernel::other_number);
      return;
    }
    if (Beside == beside::may_not_ring) return bell.ring();
    bell.signals().throw_away();
    done[ringers].store(1, std::memory_order_relaxed);
    Beside == beside::throws_rings_away ? bell.ring_again() : bell.ring();
  }
  void thread(unsigned self) {
    if (self == 0) return sleeper();
    if (self > ringers) return program();
    done[self - 1].store(1, std::memory_order_relaxed);
    bell.ring();
  }
  void after() {
    RL_ASSERT(signals_come[1] == to_come / 2 && signals_come[2] == to_come / 2);
    reached.asleep += bell.signals().times_asleep != 0;
    reached.expected += bell.signals().times_expected != 0;
  }
};

// Between quieten() and the next sleep() no ring comes, and none is there; what the program sends
// meanwhile is not lost.
template <template <class> class Atomic = model_atomic>
struct bell_quiet : rl::test_suite<bell_quiet<Atomic>, 4> {
  static constexpr unsigned ringers = 2;
  inline static unsigned expected_a_ring = 0;

  struct kernel : bell_kernel {
    kernel() { is_ever_interrupted = false; }
  };
  model_bell<kernel, Atomic> bell;
  unsigned come = 0;

  bell_quiet() { bell.begin(); }

  void thread(unsigned self) {
    if (self == 0) {
      signal_info info;
      while (come < 2) {
        while (bell.sleep(0, info) == 0) {
        }
        ++come;
        bell.quieten();
        for (unsigned steps = 0; steps < 3; ++steps) {  // of its handler
          RL_ASSERT(!bell.signals().has_ring);
          rl::ctx().sched();
        }
        bell.signals().has_been_handled();
      }
    } else if (self <= ringers) {
      bell.ring();
    } else {
      bell.signals().send(kernel::ring_number);
      bell.signals().await_handled();
      bell.signals().send(kernel::ring_number);
    }
  }
  void after() { expected_a_ring += bell.signals().times_expected != 0; }
};

}  // namespace strata::model
