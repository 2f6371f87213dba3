// SPDX-License-Identifier: Apache-2.0
// The bytes of a call that are still to be moved.
#pragma once
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace strata::preload {

class buffers {
 public:
  buffers(const iovec* all, std::size_t count) noexcept : all_(all), count_(count) {
    for (std::size_t i = 0; i < count; ++i) left_ += all[i].iov_len;
  }

  [[nodiscard]] std::size_t moved() const noexcept { return moved_; }
  [[nodiscard]] std::size_t left() const noexcept { return left_; }

  // Of those that are left: all, if none has been moved; else some of the first.
  struct part {
    const iovec* first;
    std::size_t count;
  };
  // At most that many bytes, if some have been moved or `bytes_max` is less than what is left.
  [[nodiscard]] part next(std::size_t bytes_max = SIZE_MAX) noexcept {
    if (moved_ == 0 && left_ <= bytes_max) return {all_, count_};
    std::size_t n = 0;
    for (std::size_t skipped = skip_, i = 0; i < count_ && n < some_.size() && bytes_max != 0;
         ++i, skipped = 0) {
      const std::size_t bytes = std::min(all_[i].iov_len - skipped, bytes_max);
      some_[n++] = {static_cast<char*>(all_[i].iov_base) + skipped, bytes};
      bytes_max -= bytes;
    }
    return {some_.data(), n};
  }

  void advance(std::size_t bytes) noexcept {
    moved_ += bytes;
    left_ -= bytes;
    bytes += skip_;
    while (count_ != 0 && bytes >= all_->iov_len) {
      bytes -= all_->iov_len;
      ++all_;
      --count_;
    }
    skip_ = bytes;
  }

 private:
  const iovec* all_;
  std::size_t count_;
  std::size_t skip_ = 0;  // of the first
  std::size_t moved_ = 0;
  std::size_t left_ = 0;
  std::array<iovec, 16> some_;
};

}  // namespace strata::preload
