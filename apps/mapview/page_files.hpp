// SPDX-License-Identifier: Apache-2.0
// The files in page/, which the build puts into the program.
#pragma once
#include <span>
#include <string_view>

namespace mapview {

struct page_file {
  std::string_view path;  // "/page.js"; index.html is "/"
  std::string_view type;
  std::string_view content;
};
[[nodiscard]] std::span<const page_file> page_files();

}  // namespace mapview
