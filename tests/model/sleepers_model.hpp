// SPDX-License-Identifier: Apache-2.0
// Senders, a receiver, and a worker that stands in for it until it has something else to do. The
// steps are those of shm_transport and engine::stand_in(), with a counter for the messages.
//
// A message over which both sleep is a deadlock, which Relacy reports.
#pragma once
#include "explore.hpp"
#include "model_fences.hpp"
#include "model_futex.hpp"
//
#include <atomic>

#include "net/shm/sleepers.hpp"

namespace strata::model {

// When the stand-in leaves, and mutations.
enum class leaving { after_it_has_looked, before_it_looks_again, never_looks };
// What becomes of a sender that has called somebody; a mutation of the dismissal after that, and
// one that does not fence its message off from its look for sleepers.
enum class sender { wakes_it, dies_first, dies_first_and_nobody_reminds, does_not_fence };

template <int Senders, template <class> class Atomic = fenced_futex_atomic,
          leaving Leaving = leaving::after_it_has_looked, sender Sender = sender::wakes_it>
struct sleepers_and_senders
    : rl::test_suite<sleepers_and_senders<Senders, Atomic, Leaving, Sender>, Senders + 3> {
  static constexpr auto seq_cst = std::memory_order_seq_cst;

  net::shm::sleepers<Atomic> sleeping;
  Atomic<int> arrived{0};
  Atomic<int> taken{0};
  Atomic<std::uint32_t> own{0};  // 1: there is work for the stand-in
  Atomic<int> dismissed{0};

  static void wake(Atomic<std::uint32_t>* word) {
    if (word != nullptr) model_futex::wake_all(*word);
  }
  bool all_taken() { return taken.load(seq_cst) == Senders; }

  void send() {
    arrived.fetch_add(1, std::memory_order_release);
    if (Sender != sender::does_not_fence) full_fence();
    Atomic<std::uint32_t>* const word = sleeping.to_wake();
    if (Sender == sender::wakes_it || Sender == sender::does_not_fence) return wake(word);
    // Its node is dropped.
    if (Sender == sender::dies_first) {
      wake(sleeping.remind_stand_in());
      wake(sleeping.call_receiver());
    }
  }
  void poll() {
    const int n = arrived.exchange(0, seq_cst);
    if (n != 0 && taken.fetch_add(n, seq_cst) + n == Senders) wake(sleeping.call_receiver());
  }
  void receive() {
    while (!all_taken()) {
      poll();
      sleeping.sleep_as_receiver(
          [this] { return all_taken(); }, [this] { return arrived.load(seq_cst) != 0; },
          [](Atomic<std::uint32_t>& word, std::uint32_t value) { model_futex::wait(word, value); });
    }
  }
  void stand_in() {
    const auto is_free = [this] { return own.load(std::memory_order_acquire) == 0; };
    for (;;) {
      if (Leaving == leaving::before_it_looks_again && !is_free()) return;
      const bool is_to_look =
          sleeping.sleep_as_stand_in([this] { return dismissed.load(seq_cst) != 0; },
                                     [this] { return arrived.load(seq_cst) != 0; },
                                     [this](Atomic<std::uint32_t>& word, std::uint32_t value) {
                                       model_futex::wait_on_two(own, 0U, word, value);
                                     });
      if (!is_to_look || Leaving == leaving::never_looks) {
        if (!is_free() || dismissed.load(seq_cst) != 0) return;
        continue;
      }
      sleeping.attended();
      poll();
      const bool goes_round = is_free();
      sleeping.unattended();
      if (goes_round) continue;
      return poll();
    }
  }

  void thread(unsigned self) {
    switch (self) {
      case 0:
        return receive();
      case 1:
        return stand_in();
      case 2:  // somebody brings work, or nobody needs a stand-in any more
        if (rl::rand(2) == 0) {
          own.store(1, seq_cst);
          return model_futex::wake_all(own);
        }
        dismissed.store(1, seq_cst);
        return wake(sleeping.call_stand_in());
      default:
        return send();
    }
  }
  void after() { RL_ASSERT(all_taken()); }
};

}  // namespace strata::model
