// SPDX-License-Identifier: Apache-2.0
// How many bytes a thread may make of objects in one go: few while others wait for what else it
// does.
#pragma once
#include <cstddef>

namespace strata::detail {

// There would be more. Passes through functions of the program; the objects are made into bytes
// once more, by somebody for whom nobody waits.
struct too_many_bytes {};

// Of the thread that has made it, as long as it exists; that one is not suspended meanwhile.
class bytes_at_once {
 public:
  explicit bytes_at_once(std::size_t most) noexcept;
  ~bytes_at_once();
  bytes_at_once(const bytes_at_once&) = delete;
  bytes_at_once& operator=(const bytes_at_once&) = delete;

  // For the calling thread now.
  [[nodiscard]] static std::size_t most() noexcept;

 private:
  const std::size_t outer_;
};

}  // namespace strata::detail
