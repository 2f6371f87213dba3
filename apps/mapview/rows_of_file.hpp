// SPDX-License-Identifier: Apache-2.0
// What the readers of PNG and of JPEG have in common. Private to picture_rows.
#pragma once
#include <memory>
#include <string>

#include "apps/mapview/file.hpp"
#include "apps/mapview/picture_rows.hpp"

namespace mapview {

[[nodiscard]] std::unique_ptr<picture_rows> open_png_rows(const std::string& path, open_file in);
[[nodiscard]] std::unique_ptr<picture_rows> open_jpeg_rows(const std::string& path, open_file in);

// Throw strata::user_error with one line.
[[noreturn]] void refuse_picture(const std::string& path, const std::string& why);
[[noreturn]] void refuse_held(const std::string& path, const char* kind, const char* instead);

}  // namespace mapview
