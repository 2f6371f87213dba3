// SPDX-License-Identifier: Apache-2.0
// An alignment as a path through the matrix, and what can be read off it.
#pragma once

#include <cstdint>
#include <vector>

#include "apps/align/kernel.hpp"
#include "apps/align/packed.hpp"
#include "apps/align/scoring.hpp"

namespace align {

/// One step kind of a path, named as in CIGAR strings.
enum class step : char {
  pair = 'M',        ///< a letter of each
  query_only = 'I',  ///< a letter of the query against a gap
  ref_only = 'D',    ///< a letter of the reference against a gap
};

struct path_run {
  step kind;
  std::int64_t length;
  friend bool operator==(const path_run&, const path_run&) = default;
};

/// Runs of steps; neighbours differ in kind.
class path {
 public:
  void add(step kind, std::int64_t length) {
    if (length == 0) return;
    if (!runs_.empty() && runs_.back().kind == kind)
      runs_.back().length += length;
    else
      runs_.push_back({kind, length});
  }
  void append(const path& other) {
    for (const path_run& r : other.runs_) add(r.kind, r.length);
  }
  [[nodiscard]] const std::vector<path_run>& runs() const { return runs_; }

 private:
  std::vector<path_run> runs_;
};

struct path_summary {
  std::int64_t score = 0;
  std::int64_t columns = 0;  ///< length of the alignment, gaps included
  std::int64_t matches = 0;
  std::int64_t mismatches = 0;
  std::int64_t gap_letters = 0;
  std::int64_t gaps = 0;  ///< openings
  std::int64_t query_letters = 0, ref_letters = 0;

  [[nodiscard]] double identity() const {
    return columns == 0 ? 0.0 : static_cast<double>(matches) / static_cast<double>(columns);
  }
};

/// Walks the path over the letters it is about and adds up its score anew: the check of every
/// result.
path_summary summarize(const path& p, letters_view query, letters_view ref, const scoring& s);

}  // namespace align
