// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

namespace mapview {

using open_file = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

// All of a file, of any kind. Throws strata::user_error, with the file and the reason.
[[nodiscard]] std::vector<unsigned char> read_file(const std::string& path);
// The same of a plain file of at most so many bytes. Anything else that has its name is refused
// before it is read: a pipe would be waited for, and a device may have no end.
[[nodiscard]] std::vector<unsigned char> read_plain_file(const std::string& path,
                                                         std::size_t bytes_max);

}  // namespace mapview
