// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

namespace mapview {

// All of a file. Throws strata::user_error, with the file and the reason.
[[nodiscard]] std::vector<unsigned char> read_file(const std::string& path);

}  // namespace mapview
