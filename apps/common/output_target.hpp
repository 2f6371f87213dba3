// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace apps {

// Where a path that is to be written leads. One of the two:
struct output_target {
  // A descriptor of this process, which the path names (/dev/stdout, /dev/fd/3) or which is
  // standard output or standard error and ends in the same file; it need not be open for writing.
  // -1: none.
  int descriptor = -1;
  // A path that is no symbolic link; there may be nothing yet. Empty: there is a descriptor.
  std::string path;
};

// Where links go round in a circle the path is one of them.
[[nodiscard]] output_target target_of(const std::string& path);

}  // namespace apps
