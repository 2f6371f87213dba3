// SPDX-License-Identifier: Apache-2.0
// Who sleeps, who may be woken, and who lends its place: the eventcount of the scheduler, with one
// state for each worker.
//
// A place (worker) is run by its own thread, or lent to a thread from outside while its own thread
// sleeps:
//
//   the own thread: running --announce--> parked --wake--> waking --> woken --wait--> running
//                                         |  ^
//                                   lease |  | give_back (or hand_back, straight to running)
//                                         v  |
//   the guest:                           leased --announce--> leased_parked --wake-->
//                                           leased_waking --> leased_woken --wait--> leased
//
// Whoever runs a place has been counted out of the sleepers before: where all are sleepers, nobody
// runs. So a waker takes the sleeper, counts it out, and only then lets it go.
//
// No wake-up is lost because both sides announce before they look: a sleeper announces and then
// looks for work; a producer publishes work and then looks for sleepers. Each needs a full fence
// between the two; partner operations are named below.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "strata/detail/cpu.hpp"

namespace strata::detail {

enum class place_state : std::uint32_t {
  running,
  parked,
  waking,
  woken,
  leased,
  leased_parked,
  leased_waking,
  leased_woken
};

// Two threads may sleep on the state of one place, and are woken each by itself.
enum class sleeper : std::uint32_t { own_thread = 1, guest = 2 };

// Futex: has wait(address, expected, who) and wake(address, who); the model supplies its own.
template <template <class> class Atomic, class Futex>
class idle_set {
 public:
  explicit idle_set(unsigned places, Futex futex = {})
      : places_(places), futex_(futex), state_(std::make_unique<padded[]>(places)) {}
  [[nodiscard]] unsigned places() const noexcept { return places_; }

  // Where those of place i sleep.
  [[nodiscard]] Atomic<std::uint32_t>& state_of(unsigned i) noexcept { return state_[i].value; }

  // ---- the thread that runs place i ----

  // "I am about to sleep." The caller then looks for work once more and calls either cancel() or
  // wait().
  void announce(unsigned i, bool guest) noexcept {
    // Counted before it can be woken, so the count is never below the number of sleepers. Partner:
    // the load in anyone_parked(), after the producer's full fence.
    tally_.fetch_add(1, std::memory_order_seq_cst);
    state_[i].value.store(guest ? leased_parked : parked, std::memory_order_seq_cst);
  }

  // "I found work after all." Nothing when the place was lent away meanwhile, or somebody wakes us:
  // the caller must wait(). Else a tally: if it is one that the caller has seen since it announced,
  // nobody has ceased to sleep, or come to, in between.
  [[nodiscard]] std::optional<std::uint64_t> cancel(unsigned i, bool guest) noexcept {
    word expected = guest ? leased_parked : parked;
    if (state_[i].value.compare_exchange_strong(expected, guest ? leased : running,
                                                std::memory_order_seq_cst,
                                                std::memory_order_seq_cst)) {
      return tally_.fetch_add(one_leaves, std::memory_order_seq_cst);
    }
    if (expected != (guest ? leased : running)) return std::nullopt;
    return tally();  // it was lent, whereby it was counted out, and handed back
  }

  // Sleeps until woken; false when somebody woke us before. What the waker wrote before waking is
  // visible. Partner: wake().
  bool wait(unsigned i, bool guest) noexcept {
    return wait(i, guest, [this](auto& state, word seen, sleeper who, bool) {
      futex_.wait(state, seen, who);
    });
  }
  // sleep(state, seen, who, idle): as futex.wait(state, seen, who). `idle`: the place sleeps as
  // well, and not because of somebody else.
  template <class Sleep>
  bool wait(unsigned i, bool guest, Sleep&& sleep) noexcept {
    const sleeper who = guest ? sleeper::guest : sleeper::own_thread;
    const word parked_here = guest ? leased_parked : parked;
    const word awake = guest ? leased : running;
    const word called = guest ? leased_woken : woken;
    for (bool slept = false;; slept = true) {
      const word now = state_[i].value.load(std::memory_order_acquire);
      if (now == awake) return slept;
      // Said, then looked for work. Partner: is_coming(). Nobody else changes this state.
      if (now == called) {
        state_[i].value.exchange(awake, std::memory_order_seq_cst);
        return slept;
      }
      sleep(state_[i].value, now, who, now == parked_here);
    }
  }

  // ---- a thread from outside ----

  // Takes the place of a sleeper, of `hint` if it sleeps. Returns the place, or -1 when nobody
  // sleeps. The state left there by its last user is visible.
  [[nodiscard]] int lease(unsigned hint = 0) noexcept {
    for (unsigned n = 0; n < places_; ++n) {
      const unsigned i = n == 0 ? hint : n <= hint ? n - 1 : n;
      word expected = parked;
      if (state_[i].value.load(std::memory_order_relaxed) == parked &&
          state_[i].value.compare_exchange_strong(expected, leased, std::memory_order_seq_cst,
                                                  std::memory_order_relaxed)) {
        tally_.fetch_add(one_leaves, std::memory_order_seq_cst);
        return static_cast<int>(i);
      }
    }
    return -1;
  }

  // Gives the place back to its sleeping thread. The caller then looks for work left behind and
  // calls wake_one() if there is any.
  void give_back(unsigned i) noexcept { announce(i, false); }

  // Gives it back with work to do: its own thread wakes up. In no moment does the place count as
  // asleep.
  void hand_back(unsigned i) noexcept {
    state_[i].value.store(running, std::memory_order_seq_cst);
    futex_.wake(state_[i].value, sleeper::own_thread);
  }

  // ---- anybody ----

  // After publishing work and a full fence.
  [[nodiscard]] bool anyone_parked() const noexcept { return sleepers() > 0; }
  [[nodiscard]] bool is_parked(unsigned i) const noexcept {
    const word s = state_[i].value.load(std::memory_order_seq_cst);
    return s == parked || s == leased_parked;
  }
  // Some place is lent away. A hint while places change hands.
  [[nodiscard]] bool somebody_is_guest() const noexcept {
    for (unsigned i = 0; i < places_; ++i) {
      if (state_[i].value.load(std::memory_order_relaxed) >= leased) return true;
    }
    return false;
  }
  // It has been woken and has yet to look around: it will see what the caller published before.
  [[nodiscard]] bool is_coming(unsigned i) const noexcept {
    const word s = state_[i].value.load(std::memory_order_seq_cst);
    return s == woken || s == leased_woken;
  }
  [[nodiscard]] unsigned sleepers() const noexcept {
    // As many as there are places: at this moment nobody runs any.
    return sleepers_of(tally());
  }
  // The sleepers, and how often one has ceased to be one: if all sleep and it is the same later,
  // nobody has run in between.
  [[nodiscard]] std::uint64_t tally() const noexcept {
    return tally_.load(std::memory_order_seq_cst);
  }
  [[nodiscard]] static unsigned sleepers_of(std::uint64_t tally) noexcept {
    return static_cast<unsigned>(tally);
  }

  // Wakes the sleeper of place i, if it sleeps.
  bool wake(unsigned i) noexcept {
    return wake(i, [] {});
  }
  // The same; before that, while nobody runs the place or can take it, calls meanwhile().
  template <class Do>
  bool wake(unsigned i, Do&& meanwhile) noexcept {
    for (const bool guest : {false, true}) {
      word expected = guest ? leased_parked : parked;
      // Seq_cst where it fails, too: for who comes without having looked, this is the look after
      // what it has published. Partner: announce().
      if (state_[i].value.compare_exchange_strong(expected, guest ? leased_waking : waking,
                                                  std::memory_order_seq_cst,
                                                  std::memory_order_seq_cst)) {
        tally_.fetch_add(one_leaves, std::memory_order_seq_cst);
        meanwhile();
        // Seq_cst: what we wrote before is visible to the sleeper. Partner: wait().
        state_[i].value.store(guest ? leased_woken : woken, std::memory_order_seq_cst);
        futex_.wake(state_[i].value, guest ? sleeper::guest : sleeper::own_thread);
        return true;
      }
    }
    return false;
  }

  // Wakes one sleeper, the first at or after `hint`. Returns its place, or -1 when nobody slept.
  int wake_one(unsigned hint = 0) noexcept {
    for (unsigned n = 0; n < places_; ++n) {
      const unsigned i = (hint + n) % places_;
      // Seq_cst like the store in announce(), or we could miss a sleeper that has missed our work.
      const word s = state_[i].value.load(std::memory_order_seq_cst);
      if ((s == parked || s == leased_parked) && wake(i)) return static_cast<int>(i);
    }
    return -1;
  }

 private:
  using word = std::uint32_t;
  static constexpr word running = static_cast<word>(place_state::running);
  static constexpr word parked = static_cast<word>(place_state::parked);
  static constexpr word waking = static_cast<word>(place_state::waking);
  static constexpr word woken = static_cast<word>(place_state::woken);
  static constexpr word leased = static_cast<word>(place_state::leased);
  static constexpr word leased_parked = static_cast<word>(place_state::leased_parked);
  static constexpr word leased_waking = static_cast<word>(place_state::leased_waking);
  static constexpr word leased_woken = static_cast<word>(place_state::leased_woken);

  struct alignas(64) padded {
    Atomic<word> value{running};
  };

  const unsigned places_;
  Futex futex_;
  std::unique_ptr<padded[]> state_;
  // The lower half less one; the upper half, by the carry, more one.
  static constexpr std::uint64_t one_leaves = UINT32_MAX;
  // Apart from what its neighbours read all the time: whoever enters and leaves writes it.
  alignas(destructive_bytes) Atomic<std::uint64_t> tally_{0};
};

}  // namespace strata::detail
