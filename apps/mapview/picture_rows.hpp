// SPDX-License-Identifier: Apache-2.0
// Pictures that are read from above to below, so that large ones need not be held whole.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "apps/mapview/picture.hpp"

namespace mapview {

class picture_rows {
 public:
  picture_rows() = default;
  virtual ~picture_rows() = default;
  picture_rows(const picture_rows&) = delete;
  picture_rows& operator=(const picture_rows&) = delete;

  [[nodiscard]] virtual size dimensions() const = 0;

  // The next rows, three bytes a pixel; all calls together ask for no more than there are. Blocks
  // while the file is read. Throws strata::user_error where it is damaged or ends too early. One
  // thread at a time.
  virtual void read(std::uint8_t* rgb, std::uint32_t rows) = 0;
};

// A file that gives its pixels in an order other than from above to below (an interlaced PNG, a
// JPEG of several scans, as progressive ones are) has to be held whole: of at most so many pixels.
inline constexpr std::uint64_t held_pixels_max = std::uint64_t{1} << 30;

// By the name's end: .png, .jpg or .jpeg. Of the others a row at a time is held. What is
// transparent lies on black. Throws strata::user_error: cannot be opened, no such picture, one of
// those that have to be held and are too large.
[[nodiscard]] std::unique_ptr<picture_rows> open_rows(const std::string& path);

// Of a picture that is held.
[[nodiscard]] std::unique_ptr<picture_rows> rows_of(picture held);

}  // namespace mapview
