// SPDX-License-Identifier: Apache-2.0
// Memory for values of any type, for as long as an operation lasts.
#pragma once
#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>
#include <span>

namespace strata::messages {

class scratch {
 public:
  explicit scratch(std::size_t bytes, std::size_t alignment = 1)
      : alignment_(static_cast<std::align_val_t>(std::max(alignment, alignof(std::max_align_t)))),
        data_(static_cast<std::byte*>(::operator new(std::max<std::size_t>(bytes, 1), alignment_)),
              release{alignment_}),
        bytes_(bytes) {}

  [[nodiscard]] std::byte* data() const noexcept { return data_.get(); }
  [[nodiscard]] std::span<std::byte> all() const noexcept { return {data(), bytes_}; }

 private:
  struct release {
    std::align_val_t alignment;
    void operator()(std::byte* p) const noexcept { ::operator delete(p, alignment); }
  };
  std::align_val_t alignment_;
  std::unique_ptr<std::byte, release> data_;
  std::size_t bytes_;
};

}  // namespace strata::messages
