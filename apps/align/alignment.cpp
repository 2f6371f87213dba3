// SPDX-License-Identifier: Apache-2.0
#include "apps/align/alignment.hpp"

namespace align {

path_summary summarize(const path& p, letters_view query, letters_view ref, const scoring& s) {
  path_summary sum;
  for (const path_run& run : p.runs()) {
    sum.columns += run.length;
    if (run.kind == step::pair) {
      for (std::int64_t k = 0; k < run.length; ++k) {
        const std::int64_t i = sum.query_letters + k, j = sum.ref_letters + k;
        // A path longer than its letters is a bug that the caller's comparison of lengths reports.
        if (i >= query.size() || j >= ref.size()) continue;
        const bool equal = query[i] == ref[j] && query[i] < letter_ambiguous;
        ++(equal ? sum.matches : sum.mismatches);
      }
      sum.query_letters += run.length;
      sum.ref_letters += run.length;
    } else {
      ++sum.gaps;
      sum.gap_letters += run.length;
      sum.score -= s.gap(run.length);
      (run.kind == step::query_only ? sum.query_letters : sum.ref_letters) += run.length;
    }
  }
  sum.score += sum.matches * s.match + sum.mismatches * s.mismatch;
  return sum;
}

}  // namespace align
