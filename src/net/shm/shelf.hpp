// SPDX-License-Identifier: Apache-2.0
// A few small things that one process, the owner, offers to others through memory that all of them
// see. Whoever wants one takes the oldest with a single compare-and-swap; the owner's threads have
// no part in it.
//
//      word_ = how many were ever put here | unattended | how many are here now
//
// Everything that takers and owner have to agree about is in that word, and the first part of it
// only grows. So a taker copies what lies in the place first and claims it afterwards: if the claim
// succeeds nothing can have been written there meanwhile, and nobody who dies between the two
// leaves anything half done. (The copying is that of a sequence lock: H.-J. Boehm, "Can seqlocks
// get along with programming language memory models?", 2012, doi:10.1145/2247684.2247688.)
//
// "Unattended": the owner does not look whether there is room. Whoever takes when little is left
// clears the flag and tells it, once.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "net/shelves.hpp"
#include "strata/detail/cpu.hpp"

namespace strata::net::shm {

// Lives in shared memory, zero at first. Each place holds a number of bytes and so many bytes.
template <template <class> class Atomic, unsigned Places, unsigned PlaceWords>
class shelf {
 public:
  using word = std::uint64_t;
  static constexpr unsigned places = Places;
  static constexpr std::size_t bytes_max = PlaceWords * sizeof(word);
  // Told to the owner when no more than this are left.
  static constexpr unsigned few = Places / 4;
  static_assert(Places < 128 && (Places & (Places - 1)) == 0);

  // How many are here. Seq_cst: the owner puts something here and then looks who waits for it;
  // whoever says that it waits then looks here. Partner: put().
  [[nodiscard]] unsigned size() const noexcept {
    return level(word_.load(std::memory_order_seq_cst));
  }

  // ---- the owner, one thread at a time ----

  // The place that it has now, or `places` when there is no room among the first `limit` of them.
  // Full now: unattended.
  unsigned put(std::span<const std::byte> bytes, unsigned limit) noexcept {
    // Acquire: whoever emptied the place has read it. Partner: the exchange in take().
    word seen = word_.load(std::memory_order_acquire);
    if (level(seen) >= limit || limit > Places || bytes.size() > bytes_max) return Places;
    const unsigned place = static_cast<unsigned>(ever(seen) % Places);
    Atomic<word>* const at = places_[place].words;
    at[0].store(bytes.size(), std::memory_order_relaxed);
    for (std::size_t done = 0; done < bytes.size(); done += sizeof(word)) {
      word w = 0;
      std::memcpy(&w, bytes.data() + done, std::min(sizeof(w), bytes.size() - done));
      at[1 + done / sizeof(word)].store(w, std::memory_order_relaxed);
    }
    word next;
    do {
      next = made(ever(seen) + 1, level(seen) + 1, level(seen) + 1 >= limit || is_unattended(seen));
      // Release: who sees that it is here sees what it is. Partner: the load in take(). Seq_cst:
      // see size().
    } while (!word_.compare_exchange_weak(seen, next, std::memory_order_seq_cst,
                                          std::memory_order_relaxed));
    return place;
  }

  void set_attended(bool attended) noexcept {
    word seen = word_.load(std::memory_order_relaxed);
    while (is_unattended(seen) == attended &&
           !word_.compare_exchange_weak(seen, made(ever(seen), level(seen), !attended),
                                        std::memory_order_seq_cst, std::memory_order_relaxed)) {
    }
  }

  // ---- anybody ----

  // Copies the oldest to `into`, of at least bytes_max bytes. Believes nothing that it reads.
  taken_thing take(std::byte* into) noexcept {
    return take(into, [](word seen) {
      const bool few_left = level(seen) - 1 <= few;
      return made(ever(seen), level(seen) - 1, is_unattended(seen) && !few_left);
    });
  }
  // The same for the owner, who need not be told and takes it as a sign that nobody else wants any:
  // unattended.
  taken_thing take_back(std::byte* into) noexcept {
    return take(into, [](word seen) { return made(ever(seen), level(seen) - 1, true); });
  }

 private:
  static constexpr word level_mask = 0x7f, unattended_flag = 0x80;
  static constexpr unsigned ever_shift = 8;

  static constexpr unsigned level(word w) noexcept { return static_cast<unsigned>(w & level_mask); }
  static constexpr word ever(word w) noexcept { return w >> ever_shift; }
  static constexpr bool is_unattended(word w) noexcept { return (w & unattended_flag) != 0; }
  static constexpr word made(word ever_put, unsigned here, bool unattended) noexcept {
    return ever_put << ever_shift | (unattended ? unattended_flag : 0) | here;
  }

  template <class Next>
  taken_thing take(std::byte* into, const Next& next_of) noexcept {
    // Acquire: what lies in the places. Partner: the exchange in put(). Seq_cst: see size().
    word seen = word_.load(std::memory_order_seq_cst);
    for (;;) {
      if (level(seen) == 0) return {};
      if (level(seen) > Places || level(seen) > ever(seen)) return {take_outcome::malformed};
      const unsigned place = static_cast<unsigned>((ever(seen) - level(seen)) % Places);
      const Atomic<word>* const at = places_[place].words;
      const word bytes = at[0].load(std::memory_order_relaxed);
      const bool fits = bytes <= bytes_max;
      for (std::size_t done = 0; fits && done < bytes; done += sizeof(word)) {
        const word w = at[1 + done / sizeof(word)].load(std::memory_order_relaxed);
        std::memcpy(into + done, &w, sizeof(w));
      }
      const word next = next_of(seen);
      // Release: what we have read was read before it is written again. Partner: the load in put().
      // Acquire on failure: we look again.
      if (word_.compare_exchange_weak(seen, next, std::memory_order_seq_cst,
                                      std::memory_order_acquire)) {
        // A length that no owner writes, and not because it was being written.
        if (!fits) return {take_outcome::malformed};
        return {take_outcome::taken,
                place,
                static_cast<std::size_t>(bytes),
                is_unattended(seen) && !is_unattended(next),
                &word_,
                places_[(place + 1) % Places].words};
      }
    }
  }

  struct alignas(detail::destructive_bytes) contents {
    Atomic<word> words[1 + PlaceWords];
  };
  alignas(detail::destructive_bytes) Atomic<word> word_{0};
  contents places_[Places];
};

}  // namespace strata::net::shm
