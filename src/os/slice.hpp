// SPDX-License-Identifier: Apache-2.0
// How soon the kernel lets a thread run that has been asleep.
#pragma once

namespace strata::os {

/// Asks the kernel to run the calling thread in the shortest turns there are. A thread that mostly
/// sleeps then runs at once when it is woken on a core where another computes, instead of after
/// that one's turn (up to 3 ms); it gets no larger share. Linux 6.12 and later (EEVDF with slices
/// of one's own); has no effect where it is not known, and for other policies than the usual one.
void prefer_short_turns() noexcept;

}  // namespace strata::os
