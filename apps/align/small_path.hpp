// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/align/alignment.hpp"

namespace align {

/// An optimal global alignment by the whole matrix of decisions, a byte per cell. `top`: cost of
/// the first residue of a gap in the reference that begins at the top left corner; `bottom`: of one
/// that ends at the bottom right one (Myers and Miller's tb, te).
path small_path(letters_view query, letters_view ref, const scoring& s, int top, int bottom);

}  // namespace align
