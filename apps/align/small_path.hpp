// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/align/alignment.hpp"
#include "apps/align/band.hpp"

namespace align {

/// An optimal global alignment by all decisions within the band that it keeps to (see
/// band_of_paths()), a byte per cell. `top`: cost of
/// the first residue of a gap in the reference that begins at the top left corner; `bottom`: of one
/// that ends at the bottom right one (Myers and Miller's tb, te).
path small_path(letters_view query, letters_view ref, const band& within, const scoring& s, int top,
                int bottom);

}  // namespace align
