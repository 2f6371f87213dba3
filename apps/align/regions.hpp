// SPDX-License-Identifier: Apache-2.0
// Findings that lie close together on the reference, as one region; and what is known about the
// parts of phage lambda.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/align/comparison.hpp"

namespace align {

struct region {
  std::int64_t begin = 0, end = 0;    ///< on the reference, 1-based inclusive
  std::vector<const finding*> parts;  ///< in the order of the reference
  std::int64_t query_covered = 0;     ///< letters of the query that some part aligns
  std::int64_t matches = 0, columns = 0;
  std::int64_t score = 0;  ///< sum

  [[nodiscard]] double identity() const {
    return columns == 0 ? 0 : static_cast<double>(matches) / static_cast<double>(columns);
  }
};

/// Groups findings whose distance on the reference is at most `reach`. Best (highest sum of scores)
/// first.
std::vector<region> group(const std::vector<finding>& findings, std::int64_t reach);

/// True if the large parts (the best 97% of the score), read along the reference, follow the query
/// in order but for one jump back: as when a ring, linear in the query's file, was opened at
/// another place.
bool rotated(const region& g);

struct feature {
  std::int64_t begin, end;
  const char* what;
  const char* short_name;
};

/// The functional parts of the query, if it is one we know: phage lambda, NC_001416.1. Empty
/// otherwise.
std::vector<feature> known_features(const sequence& query);

/// "head, tail and side tail fibre": the features that [begin, end] covers for the larger part, or
/// that cover most of it.
std::string features_in(const std::vector<feature>& all, std::int64_t begin, std::int64_t end);

}  // namespace align
