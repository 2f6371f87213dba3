// SPDX-License-Identifier: Apache-2.0
// The work-stealing deque of one worker, split in a private and a shared part.
//
//      tail_            split_                 head_
//        | shared: thieves | private: the owner |
//
// The owner pushes and pops at head_ with plain loads and stores; thieves take from tail_ with a
// compare-and-swap, and only below split_. The owner moves split_ when it is asked to (attention_),
// so nothing is paid for sharing until somebody is hungry; while others sleep a push can be made to
// say so (remind()), for a fence. Source of the split: T. van Dijk and J.
// van de Pol, "Lace: non-blocking split deque for work-stealing", 2014
// (doi:10.1007/978-3-319-14313-2_18); of the indices that only grow, so that no ABA can arise: D.
// Chase and Y. Lev, "Dynamic circular work-stealing deque", 2005 (doi:10.1145/1073970.1073974).
// Where we differ: tail_ and split_ are two words, kept apart by an order of loads (see steal());
// and a thief can move split_ itself (force()), so that an owner deep in one long computation does
// not keep its waiting work to itself.
//
// The capacity is fixed. When it is full the owner takes its push back: a fork then is a plain call
// (there are thousands of older tasks to steal), and a token waits in the worker's overflow list
// (overflow_list.hpp).
#pragma once
#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "strata/detail/compare_now.hpp"
#include "strata/detail/cpu.hpp"
#include "strata/detail/fences.hpp"

namespace strata::detail {

enum class steal_outcome { taken, lost_race, empty };

// What the owner is to do after a push.
enum class push_outcome { done, shared, reminded, full };

template <class T, template <class> class Atomic = std::atomic, class Fences = asymmetric_fences,
          std::size_t Capacity = 8192>
class split_deque {
  static_assert((Capacity & (Capacity - 1)) == 0);

 public:
  using index = std::uint64_t;

  split_deque() noexcept { attention_.store(unasked(first), std::memory_order_relaxed); }
  split_deque(const split_deque&) = delete;
  split_deque& operator=(const split_deque&) = delete;

  // ---- owner
  // -----------------------------------------------------------------------------------------------------------

  // The number that the next item will have.
  [[nodiscard]] index next() const noexcept { return head_.load(std::memory_order_relaxed); }

  // Pushes an item as number h == next(). Returns true when the owner must call tend() before it
  // does anything else here.
  [[nodiscard]] bool push(index h, T* item) noexcept {
    slot(h).store(item, std::memory_order_relaxed);
    // Pairs with the acquire loads of head_ in force() and maybe_work(): who sees the new head also
    // sees the item behind it.
    head_.store(h + 1, std::memory_order_release);
    // Store head_, then load attention_: partner is the heavy fence between ask() and maybe_work()
    // of a thief that is about to sleep. Either we see its request, or it sees our item.
    Fences::light();
    return !below_now(h, attention_);
  }

  // Answers attention after a push, or when the owner owes(): shares half of the private part when
  // asked (`shared`: something became stealable, so the caller can wake a sleeper); only fences
  // when nobody but the owner itself has asked (`reminded`); takes the item back when it filled the
  // deque (`full`).
  push_outcome tend() noexcept {
    const index h = head_.load(std::memory_order_relaxed) - 1;
    // Acquire: a thief has read its slot before the next push overwrites it. Partner: the
    // compare-and-swap in steal_if().
    if (h + 1 - tail_seen_ >= Capacity) tail_seen_ = tail_.load(std::memory_order_acquire);
    const index t = tail_seen_;
    if (is_reminder(attention_.load(std::memory_order_relaxed))) {
      // Between the push and the caller's look for those who look for work. Partner: the fence in
      // scheduler::pass_on().
      Fences::full();
      if (h + 1 - t < Capacity) return push_outcome::reminded;
      return claim(h) ? push_outcome::full : push_outcome::reminded;
    }
    // One exchange, so that a request made between reading and re-arming is not lost. Partner:
    // ask().
    const bool asks_itself = h >= asks_later_at_;
    if (asks_itself) asks_later_at_ = never;
    const bool asked =
        attention_.exchange(next_attention(), std::memory_order_seq_cst) == 0 || asks_itself;
    // Where light() orders nothing, this stands between the push and the caller's look for
    // sleepers.
    if (!Fences::available()) Fences::heavy();
    const bool shared = asked && share(h + 1);
    // A thief has forced the item out just now, and nothing is left to share. Others may be asking
    // too, so the request stands until there is.
    if (asked && !shared) attention_.store(0, std::memory_order_relaxed);
    if (h + 1 - t < Capacity) return shared ? push_outcome::shared : push_outcome::done;
    // No room for another push. If a thief was so fast that item h is gone already, there is room
    // again.
    return claim(h) ? push_outcome::full : push_outcome::shared;
  }

  // Takes back `expected`, pushed as number h on this or another deque, if it is the newest item
  // here and nobody stole it. No fence, no locked instruction while it is private; and no need to
  // load head_ first, which would chain every pop to the push before it. (A stale slot can hold the
  // same pointer at the same number, but then the item lies below split_, and claim() refuses.)
  [[nodiscard]] bool try_pop(index h, const T* expected) noexcept {
    if (!equal_now(expected, slot(h))) [[unlikely]]
      return false;
    if (!equal_now(h + 1, head_)) [[unlikely]]
      return false;
    return claim(h);
  }

  // The same for a caller that does not know the number.
  [[nodiscard]] bool try_pop(const T* expected) noexcept {
    const index h = head_.load(std::memory_order_relaxed) - 1;
    return slot(h).load(std::memory_order_relaxed) == expected && claim(h);
  }

  // Takes the newest item, null when there is none.
  [[nodiscard]] T* pop() noexcept {
    const index h = head_.load(std::memory_order_relaxed);
    if (h == split_.load(std::memory_order_relaxed) && h == tail_.load(std::memory_order_relaxed)) {
      return nullptr;
    }
    T* item = slot(h - 1).load(std::memory_order_relaxed);
    return claim(h - 1) ? item : nullptr;
  }

  // True while somebody waits for this owner to share.
  [[nodiscard]] bool asked() const noexcept {
    return attention_.load(std::memory_order_relaxed) == 0;
  }

  // The same, and there is something that it does not share yet: of use to an owner that takes item
  // after item and pushes none, since a request waits for a push otherwise.
  [[nodiscard]] bool owes() const noexcept {
    // While a thief forces, the split is above any head.
    return asked() &&
           head_.load(std::memory_order_relaxed) > split_.load(std::memory_order_relaxed);
  }

  // The next pushes are `reminded` until somebody asks, or the owner forgets it.
  void remind() noexcept { change_unless_asked(reminder); }
  void forget_reminder() noexcept { change_unless_asked(next_attention()); }
  // Shares half of the private part, unasked. False: there is none.
  bool share() noexcept { return share(head_.load(std::memory_order_relaxed)); }

  // Who is hungry has no use for the oldest item, and others are only shared behind it: the owner
  // asks itself again once it takes that item, by pop() or take_oldest().
  void ask_at_oldest() noexcept { asks_at_oldest_ = true; }

  // The owner asks itself again later, and not at its next push: where there are `more` items more
  // than now, or once it has taken back some that it shares, or has lost its last. A program that
  // forks as a tree does comes to one of these once in many forks, one that makes many tasks in a
  // row once in `more`.
  void ask_later(index more) noexcept {
    asks_later_at_ = head_.load(std::memory_order_relaxed) + more;
    change_unless_asked(next_attention());
  }

  // Takes the oldest item out of its turn, as a thief would; null: nothing is shared, or a thief
  // was faster.
  [[nodiscard]] T* take_oldest() noexcept {
    T* item = nullptr;
    if (steal(item) != steal_outcome::taken) return nullptr;
    oldest_is_taken();
    return item;
  }

  // ---- anybody
  // ---------------------------------------------------------------------------------------------------------

  [[nodiscard]] steal_outcome steal(T*& item) noexcept {
    return steal_if(item, [](const T*) { return true; });
  }

  // The same, unless the oldest item is one that the thief has no use for; only the pointer itself
  // may be looked at, the item can be gone.
  template <class Accepts>
  [[nodiscard]] steal_outcome steal_if(T*& item, const Accepts& accepts) noexcept {
    // The order of these two loads carries the proof (all seq_cst). The owner lowers split_ and
    // then reads tail_. If it read a tail below its new split, every thief that reads a tail at or
    // above that split reads it later, and so sees the lowered split.
    index t = tail_.load(std::memory_order_seq_cst);
    index s = split_.load(std::memory_order_seq_cst);
    if (s & provisional) s = (s & ~provisional) - 1;
    if (t >= s) return steal_outcome::empty;
    // The slot cannot be written again while tail_ is t: the deque would be over-full.
    T* found = slot(t).load(std::memory_order_relaxed);
    if (!accepts(found)) return steal_outcome::empty;
    if (!tail_.compare_exchange_strong(t, t + 1, std::memory_order_seq_cst,
                                       std::memory_order_relaxed)) {
      return steal_outcome::lost_race;
    }
    item = found;
    return steal_outcome::taken;
  }

  // Asks the owner to share at its next push.
  void ask() noexcept {
    // Seq_cst: if the request that we see standing is about to be answered, then the owner looks
    // for sleepers after that, and must see that we have announced ourselves. Partner: tend().
    if (attention_.load(std::memory_order_seq_cst) != 0) {
      attention_.store(0, std::memory_order_seq_cst);
    }
  }

  // The same by who has just taken something and does not wait for the answer: no locked
  // instruction between the item and its first step.
  void ask_again() noexcept {
    // Seq_cst, after the theft: either we see that the owner has answered the request before, or it
    // sees that the item is gone. Partner: tend(), and has_shared() behind it.
    if (attention_.load(std::memory_order_seq_cst) != 0) {
      attention_.store(0, std::memory_order_relaxed);
    }
  }

  // Shares half of the private part without the owner's help, for an owner that neither pushes nor
  // pops. True when something became stealable. Costs one heavy fence, which is why it is half.
  //
  // The split goes up provisionally, by one; steal() ignores it, while the owner's next pop goes to
  // claim_shared(), which may revoke it. After the heavy fence either the owner sees the
  // provisional split, or we see the head it had already lowered. What lies below that head is
  // nobody's yet as long as the owner does not revoke.
  bool force() noexcept {
    if (!Fences::available()) return false;
    // One at a time: a second thief must not confirm what the owner revoked from the first.
    if (forcing_.exchange(1, std::memory_order_acquire) != 0) return false;
    bool shared = false;
    const index h = head_.load(std::memory_order_acquire);
    index s = split_.load(std::memory_order_seq_cst);
    if (h > s) {
      const index raised = provisional | (s + 1);
      index expected = s;
      if (split_.compare_exchange_strong(expected, raised, std::memory_order_seq_cst,
                                         std::memory_order_relaxed)) {
        Fences::heavy();
        const index still = head_.load(std::memory_order_acquire);
        const index to = still > s ? s + (still - s + 1) / 2 : s;
        expected = raised;
        shared = split_.compare_exchange_strong(expected, to, std::memory_order_seq_cst,
                                                std::memory_order_relaxed) &&
                 to != s;
      }
    }
    forcing_.store(0, std::memory_order_release);
    return shared;
  }

  // Whether anything is in the deque, private part included. Exact only when the owner is quiet,
  // after a heavy fence, or after a full one when the owner was reminded. Partner: tend().
  [[nodiscard]] bool maybe_work() const noexcept {
    return head_.load(std::memory_order_acquire) > tail_.load(std::memory_order_acquire);
  }

  // About how many items there are.
  [[nodiscard]] index approximate_size() const noexcept {
    const index t = tail_.load(std::memory_order_relaxed);
    const index h = head_.load(std::memory_order_relaxed);
    return h > t ? h - t : 0;
  }

  // Whether thieves could find something now.
  [[nodiscard]] bool has_shared() const noexcept {
    index s = split_.load(std::memory_order_acquire);
    if (s & provisional) s = (s & ~provisional) - 1;
    return tail_.load(std::memory_order_seq_cst) < s;
  }

 private:
  static constexpr index provisional = index{1} << 63;
  // Not 0: the owner of an empty deque may try to take the item before the first, and that number
  // must be below split_ like that of any other item that is gone.
  static constexpr index first = 1;
  static constexpr index never = provisional;  // no push has that number

  Atomic<T*>& slot(index i) noexcept { return slots_[i & (Capacity - 1)]; }

  // The attention that means "nobody asked": the push that fills the last slot. Without asymmetric
  // fences the owner tends at every push, with a fence of its own.
  static index unasked(index tail) noexcept {
    return Fences::available() ? tail + Capacity - 1 : index{0};
  }
  // The attention of an owner whom nobody else has asked.
  [[nodiscard]] index next_attention() const noexcept {
    return std::min(unasked(tail_seen_), asks_later_at_);
  }
  // Any push is this number or a higher one. Not 0, which is somebody else's request.
  static constexpr index reminder = first;
  static bool is_reminder(index attention) noexcept { return attention == reminder; }

  // A compare-and-swap, because others write 0 meanwhile.
  void change_unless_asked(index to) noexcept {
    index seen = attention_.load(std::memory_order_relaxed);
    if (seen != 0) {
      attention_.compare_exchange_strong(seen, to, std::memory_order_relaxed,
                                         std::memory_order_relaxed);
    }
  }

  // Raises the split to the middle of what is private below h.
  bool share(index h) noexcept {
    index s = split_.load(std::memory_order_relaxed);
    for (;;) {
      // What we share ourselves makes the attempt of a thief that is forcing void, which it
      // notices.
      const index from = (s & provisional) ? (s & ~provisional) - 1 : s;
      if (from >= h) return false;
      const index to = from + (h - from + 1) / 2;
      // Release: pairs with the load of split_ in steal(); items below the new split are visible.
      if (swap_split(s, to)) return true;
    }
  }

  bool claim(index h) noexcept {
    head_.store(h, std::memory_order_relaxed);
    // Store head_, then load split_: partner is the heavy fence in force().
    Fences::light();
    if (at_least_now(h, split_)) [[likely]]
      return true;
    return claim_shared(h);
  }

  // The newest item, number h, lies in the shared part, or a thief is forcing. head_ is h already.
  // True when it is ours.
  [[gnu::noinline, gnu::cold]] bool claim_shared(index h) noexcept {
    index s = split_.load(std::memory_order_relaxed);
    for (;;) {
      if (s & provisional) {
        // Revoke; on failure the thief has confirmed or withdrawn, and s is what it left.
        const index before = (s & ~provisional) - 1;
        if (!swap_split(s, before)) continue;
        s = before;
      }
      if (h >= s) return true;
      const index t = tail_.load(std::memory_order_seq_cst);
      tail_seen_ = t;
      if (t > h) return lost(h);
      // Take back the newer half of what is shared, so that the next pops are private again.
      index lowered = t + (h - t) / 2;
      if (!swap_split(s, lowered)) continue;
      if (asks_later_at_ != never) ask_now();
      if (lowered == t) oldest_is_taken();
      if (tail_.load(std::memory_order_seq_cst) < lowered) return true;
      // Thieves were at the new split. Share everything but item h, whatever a thief that forces
      // makes of the split meanwhile: it is below tail_ until then, so it says nothing about who
      // owns h. If they are at h itself, race for it.
      while (!swap_split(lowered, h)) {
      }
      index last = tail_.load(std::memory_order_seq_cst);
      if (last < h) return true;
      const bool won =
          last == h && tail_.compare_exchange_strong(last, h + 1, std::memory_order_seq_cst,
                                                     std::memory_order_relaxed);
      lost(h);
      return won;
    }
  }

  void oldest_is_taken() noexcept {
    if (std::exchange(asks_at_oldest_, false)) attention_.store(0, std::memory_order_relaxed);
  }
  void ask_now() noexcept {
    asks_later_at_ = never;
    attention_.store(0, std::memory_order_relaxed);
  }

  // The deque is empty, and item h, its last, is behind tail_.
  bool lost(index h) noexcept {
    if (asks_later_at_ != never) ask_now();
    head_.store(h + 1, std::memory_order_relaxed);
    index s = split_.load(std::memory_order_relaxed);
    while (!swap_split(s, h + 1)) {
    }
    return false;
  }

  bool swap_split(index& from, index to) noexcept {
    return split_.compare_exchange_strong(from, to, std::memory_order_seq_cst,
                                          std::memory_order_relaxed);
  }

  // Written by the owner alone; thieves read head_ only to force or to see whether to sleep.
  alignas(destructive_bytes) Atomic<index> head_{first};
  // The owner's alone.
  bool asks_at_oldest_ = false;
  index asks_later_at_ = never;  // the push
  // tail_ when the owner last had to know it, so at most what it is now: a look takes the line from
  // the thief, and an answer needs none unless the deque may be full.
  index tail_seen_ = first;
  // Read by the owner at every operation, written seldom: by the owner when it shares, by thieves
  // when they ask or force.
  alignas(destructive_bytes) Atomic<index> split_{first};
  Atomic<index> attention_{
      0};  // tend() when pushing this number or a higher one; 0: somebody is hungry
  Atomic<int> forcing_{0};
  // Written by thieves.
  alignas(destructive_bytes) Atomic<index> tail_{first};
  alignas(destructive_bytes) std::array<Atomic<T*>, Capacity> slots_{};
};

}  // namespace strata::detail
