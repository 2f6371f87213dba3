// SPDX-License-Identifier: Apache-2.0
// From scores to paths, in linear memory.
#pragma once

#include "apps/align/alignment.hpp"
#include "apps/align/best_cell.hpp"
#include "apps/align/driver.hpp"

namespace align {

/// Where an optimal local alignment that ends at `end` (both letters included) with this score
/// begins: of all such beginnings, the one nearest to the end in the query, then in the reference.
/// `query` and `ref` are the letters an alignment may use, from their beginning. Returns row -1 if
/// there is none (then the score was wrong). Time: proportional to the alignment's length times the
/// width of the band that its score leaves for gaps. Memory: to its length.
cell find_begin(letters_view query, letters_view ref, cell end, std::int32_t score,
                const scoring& s, const driver& d);

/// An optimal global alignment of all of query with all of ref, whose score is `least` or more. The
/// closer that is, the narrower the band that is looked at.
/// Source: E. W. Myers and W. Miller, Optimal alignments in linear space,
/// doi:10.1093/bioinformatics/4.1.11, with tiles for the forward and backward passes. Small parts
/// keep all their decisions (64 KiB).
path global_path(letters_view query, letters_view ref, std::int64_t least, const scoring& s,
                 const driver& d);

}  // namespace align
