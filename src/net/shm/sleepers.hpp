// SPDX-License-Identifier: Apache-2.0
// Who sleeps on a node until a message comes, in memory that its peers write to: its receiver, and
// beside it perhaps a worker that has nothing to do, the receiver's stand-in. While the receiver is
// awake, or somebody polls, a sender wakes nobody; else one of the two, the stand-in if there is
// one: most messages are for its threads, and what the receiver hands to a worker that sleeps wakes
// a second thread. Both announce that they sleep and then look for messages; a sender publishes its
// message and then looks for sleepers.
//
//   each of them: awake --announces--> asleep --a sender--> called --it wakes, and looks--> awake
//
// As long as one is called nobody else is: whatever comes, it will look. Who has called it may die
// before it has woken it; so whoever learns of a death, or looks after all else, wakes both.
#pragma once
#include <atomic>
#include <cstdint>

#include "strata/detail/cpu.hpp"

namespace strata::net::shm {

template <template <class> class Atomic>
class sleepers {
 public:
  using word = Atomic<std::uint32_t>;

  // ---- a sender, when its message can be read, and a seq_cst fence after that ----

  // Whoever sleeps on that word is to be woken; null: nobody.
  [[nodiscard]] word* to_wake() noexcept {
    // Partners: sleep_as_receiver(), sleep_as_stand_in(), unattended().
    if (receiver_.load(std::memory_order_seq_cst) != asleep ||
        attendants_.load(std::memory_order_seq_cst) != 0)
      return nullptr;
    const std::uint32_t seen = stand_in_.load(std::memory_order_seq_cst);
    if (seen == called) return nullptr;
    if (seen == asleep) {
      if (word* const w = call_stand_in()) return w;
      // Left, or called by another sender: in doubt one too many is woken.
    }
    return call(receiver_);
  }

  // ---- this node ----

  // Null: the receiver is awake. One that has been called is woken all the same.
  [[nodiscard]] word* call_receiver() noexcept {
    if (word* const w = call(receiver_)) return w;
    return receiver_.load(std::memory_order_seq_cst) == called ? &receiver_ : nullptr;
  }
  // Not one that is awake: it may never come back, and until it did nobody else would be called.
  [[nodiscard]] word* call_stand_in() noexcept { return call(stand_in_); }
  // Null: nobody has called it.
  [[nodiscard]] word* remind_stand_in() noexcept {
    return stand_in_.load(std::memory_order_seq_cst) == called ? &stand_in_ : nullptr;
  }

  // Threads that poll, for which nobody is woken. On the way back each looks once more.
  void attended() noexcept { attendants_.fetch_add(1, std::memory_order_seq_cst); }
  void unattended() noexcept { attendants_.fetch_sub(1, std::memory_order_seq_cst); }
  [[nodiscard]] bool is_attended() const noexcept {
    return attendants_.load(std::memory_order_seq_cst) != 0;
  }

  // One thread's. sleep(word, value): while the word has that value, if it still does. wanted():
  // whether it is to stay awake. arrived(): whether there are messages; not asked while somebody
  // else looks for them.
  template <class Wanted, class Arrived, class Sleep>
  void sleep_as_receiver(Wanted&& wanted, Arrived&& arrived, Sleep&& sleep) {
    receiver_.store(asleep, std::memory_order_seq_cst);
    if (!wanted() && (is_attended() || !arrived())) sleep(receiver_, asleep);
    receiver_.store(awake, std::memory_order_relaxed);
  }
  // The same; true: it has to look, as nobody else was woken.
  template <class Wanted, class Arrived, class Sleep>
  [[nodiscard]] bool sleep_as_stand_in(Wanted&& wanted, Arrived&& arrived, Sleep&& sleep) {
    stand_in_.store(asleep, std::memory_order_seq_cst);
    const bool looks = !is_attended() && arrived();
    if (!looks && !wanted()) sleep(stand_in_, asleep);
    return stand_in_.exchange(awake, std::memory_order_seq_cst) == called || looks;
  }

 private:
  static constexpr std::uint32_t awake = 0, asleep = 1, called = 2;

  // Null: it does not sleep, or has been called.
  [[nodiscard]] static word* call(word& who) noexcept {
    std::uint32_t seen = asleep;
    return who.compare_exchange_strong(seen, called, std::memory_order_seq_cst,
                                       std::memory_order_seq_cst)
               ? &who
               : nullptr;
  }

  alignas(detail::destructive_bytes) word receiver_{awake};
  word stand_in_{awake};
  word attendants_{0};
};

}  // namespace strata::net::shm
