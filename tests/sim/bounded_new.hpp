// SPDX-License-Identifier: Apache-2.0
// How much memory is asked for at once.
#pragma once
#include <cstddef>

namespace strata::test {

// Of this thread, while it is there: what asks for more than `bytes` at once gets bad_alloc.
class bounded_new {
 public:
  explicit bounded_new(std::size_t bytes) noexcept;
  ~bounded_new();
  bounded_new(const bounded_new&) = delete;
  bounded_new& operator=(const bounded_new&) = delete;

  // The most that was asked for since the last one began.
  [[nodiscard]] static std::size_t most() noexcept;
};

}  // namespace strata::test
