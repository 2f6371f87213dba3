// SPDX-License-Identifier: Apache-2.0
// The best local alignments that do not overlap along the reference.
#pragma once

#include <cstdint>
#include <vector>

#include "apps/align/alignment.hpp"
#include "apps/align/driver.hpp"
#include "apps/align/part.hpp"

namespace align {

/// One comparison already swept: a strand of the query against the reference.
struct field {
  const sweep* tiles = nullptr;
  letters_view query;
  bool reverse_strand = false;
};

/// A local alignment. Cells are 0-based and inclusive; rows count along the strand that was
/// compared.
struct hit {
  std::int32_t score = 0;
  std::size_t field = 0;
  cell begin, end;
  path steps;
};

struct hits_found {
  std::vector<hit> hits;
  std::vector<node_work> nodes;  ///< what each did, if node 0 was not alone
};

/// The first hit is the best alignment of all fields; each next one is the best among the
/// alignments that use no column of the reference that an earlier hit covers. Equal scores: the
/// first field first, then the first end in row-major order. At most `most` hits, none below
/// `least` (at least 1).
///
/// The sweep's tile maxima bound what each tile can still offer, so only tiles at the top of that
/// list are looked at again, each within a window just large enough.
hits_found find_hits(const std::vector<field>& fields, letters_view ref, const scoring& s,
                     std::size_t most, std::int32_t least, const driver& d);

}  // namespace align
