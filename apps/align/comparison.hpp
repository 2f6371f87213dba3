// SPDX-License-Identifier: Apache-2.0
// The whole comparison of two sequences, as the program offers it.
#pragma once

#include <cstdint>
#include <vector>

#include "apps/align/driver.hpp"
#include "apps/align/hits.hpp"
#include "apps/align/lent.hpp"
#include "apps/align/sequence.hpp"

namespace align {

enum class strands { forward, reverse, both };

struct comparison_options {
  scoring score;
  bool global = false;
  strands which = strands::forward;  ///< of the query
  std::size_t hits = 10;
  std::int32_t least_score = 1;
};

/// A local alignment in the words of its sequences: 1-based, inclusive. On the reverse strand
/// query_begin > query_end.
struct finding {
  std::int64_t score = 0;
  bool reverse_strand = false;
  std::int64_t query_begin = 0, query_end = 0, ref_begin = 0, ref_end = 0;
  path_summary sum;
  path steps;
};

struct comparison {
  std::int64_t score = 0;
  bool reverse_strand = false;        ///< where the score was found
  std::int64_t end_i = 0, end_j = 0;  ///< local: first maximum in row-major order, 1-based, along
                                      ///< the compared strand; 0: score 0
  std::int64_t cells_with_maximum = 0;
  std::vector<finding> hits;              ///< local: the best first; global: the one alignment
  double cells = 0;                       ///< of the main sweeps
  std::vector<node_work> nodes;           ///< who did them; empty if node 0 alone
  std::vector<node_work> nodes_for_hits;  ///< who swept beside hits; empty if node 0 alone
  double sweep_seconds = 0;
  bool ok = true;  ///< every alignment, added up letter by letter, is worth its score
};

/// The sequences' lengths and the scores must satisfy scores_fit(). Inside a runtime unless the
/// driver is serial. `progress` in the driver is ignored; `show_progress` draws one for the main
/// sweeps.
comparison compare(const sequence& query, const sequence& ref, const comparison_options& o,
                   driver d, bool show_progress);

}  // namespace align
