// SPDX-License-Identifier: Apache-2.0
// Measuring work and span, as Cilkview does: Y. He, C. Leiserson, W. Leiserson, "The Cilkview
// scalability analyzer", 2010 (doi:10.1145/1810479.1810509). A strand is what runs between a fork
// and its join on one side; its clock stops while it waits.
#pragma once
#include <cstdint>
#include <functional>

namespace strata::detail {

struct strand {
  strand* parent = nullptr;
  std::uint64_t work = 0;   // ticks of this strand and of everything joined into it
  std::uint64_t span = 0;   // ticks along its longest chain
  std::uint64_t since = 0;  // when its clock started
};

// Makes s the strand that is measured here, and stops the clock of the one it interrupts.
void strand_begin(strand& s) noexcept;
// Stops s and goes on with the one it interrupted.
void strand_end(strand& s) noexcept;
// Adds two ended branches to the calling task's strand: both works, the longer span.
void strands_join(const strand& left, const strand& right) noexcept;
// The calling task's strand waits, and goes on, perhaps on another worker.
void strand_pause() noexcept;
void strand_resume(strand& s) noexcept;

// f, measured by `measure`.
template <class F>
struct measured {
  F* function;
  strand* measure;
  decltype(auto) operator()() const {
    struct scope {
      strand& s;
      explicit scope(strand& m) noexcept : s(m) { strand_begin(s); }
      ~scope() { strand_end(s); }
    } const scope{*measure};
    return std::invoke(*function);
  }
};

}  // namespace strata::detail
