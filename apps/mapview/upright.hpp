// SPDX-License-Identifier: Apache-2.0
// Pictures of cameras that were not held as their sensor's rows lie.
#pragma once
#include <cstdint>
#include <span>

#include "apps/mapview/picture.hpp"

namespace mapview {

// Where the first row and the first column of the file belong, as EXIF numbers it (tag 274): 1 to
// 8, and 1, above and to the left, where nothing is said that makes sense. marker: of a JPEG, APP1.
[[nodiscard]] unsigned orientation_in(std::span<const std::uint8_t> marker);

// The picture as it is to be seen. From 5 on width and height change places.
[[nodiscard]] picture upright(picture as_stored, unsigned orientation);

}  // namespace mapview
