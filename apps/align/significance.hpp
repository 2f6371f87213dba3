// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "apps/align/scoring.hpp"

namespace align {

/// A score that unrelated sequences of these lengths reach about once in a thousand comparisons, or
/// less often: larger ones mean relationship. From the statistics of Karlin and Altschul
/// (doi:10.1073/pnas.87.6.2264) for random letters without gaps, raised by a quarter because gaps
/// let chance go further. 0 if no such score is known: where mismatches or gaps are cheap, chance
/// goes further than that, and for most such costs the longer the sequences are. Whether it does is
/// tried on random sequences, for some milliseconds.
std::int32_t chance_score(const scoring& s, double cells);

/// The same without a trial: for what only takes longer if it is too low.
std::int32_t chance_score_untried(const scoring& s, double cells);

}  // namespace align
