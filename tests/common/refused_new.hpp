// SPDX-License-Identifier: Apache-2.0
// Want of memory, by size; and how much is asked for at once.
#pragma once
#include <climits>
#include <cstddef>
#include <cstdint>

namespace strata::test {

// Of this thread, while it is there: what asks for so many bytes at once gets bad_alloc, so often.
class refused_new {
 public:
  explicit refused_new(std::size_t least, std::size_t most = SIZE_MAX,
                       unsigned times = UINT_MAX) noexcept;
  ~refused_new();
  refused_new(const refused_new&) = delete;
  refused_new& operator=(const refused_new&) = delete;

  // The most that was asked for since the last one began.
  [[nodiscard]] static std::size_t most_asked() noexcept;
  // How often bytes were refused since then.
  [[nodiscard]] static unsigned refused() noexcept;
  // Blocks that the program has of operator new now, whichever thread asked for them.
  [[nodiscard]] static long in_use() noexcept;
};

}  // namespace strata::test
