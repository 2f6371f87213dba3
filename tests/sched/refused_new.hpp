// SPDX-License-Identifier: Apache-2.0
// Want of memory for what asks for very little of it.
#pragma once
#include <cstddef>

namespace strata::test {

// Of this thread, while it is there: what asks for at most so many bytes gets bad_alloc.
class refused_new {
 public:
  explicit refused_new(std::size_t bytes) noexcept;
  ~refused_new();
  refused_new(const refused_new&) = delete;
  refused_new& operator=(const refused_new&) = delete;
};

}  // namespace strata::test
