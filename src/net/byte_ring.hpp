// SPDX-License-Identifier: Apache-2.0
// A ring of bytes whose content and whose free space are always contiguous: the same pages are
// mapped twice, one copy behind the other. So a stream is parsed in place and written in one piece,
// and nothing is moved to make room.
//
// Not synchronised; but bytes between data().begin() and data().end() may be read while others are
// being appended.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "strata/detail/check.hpp"

namespace strata::net {

class byte_ring {
 public:
  // Capacity is bytes_min rounded up to a power of two of bytes, at least a page. Throws
  // strata::error when there is no memory.
  explicit byte_ring(std::size_t bytes_min);
  ~byte_ring();
  byte_ring(const byte_ring&) = delete;
  byte_ring& operator=(const byte_ring&) = delete;

  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] std::size_t used() const noexcept {
    return static_cast<std::size_t>(end_ - begin_);
  }
  [[nodiscard]] std::size_t room() const noexcept { return capacity_ - used(); }

  [[nodiscard]] std::span<const std::byte> data() const noexcept { return {at(begin_), used()}; }
  [[nodiscard]] std::span<std::byte> free() noexcept { return {at(end_), room()}; }

  // The first `bytes` of free() become content.
  void append(std::size_t bytes) noexcept {
    STRATA_DCHECK(bytes <= room(), bytes, room());
    end_ += bytes;
  }
  void append(const void* from, std::size_t bytes) noexcept {
    if (bytes != 0) std::memcpy(at(end_), from, bytes);
    append(bytes);
  }
  // The first `bytes` of data() become free. An empty ring starts over at its first page, so that
  // a quiet stream touches no more memory than its messages need.
  void consume(std::size_t bytes) noexcept {
    STRATA_DCHECK(bytes <= used(), bytes, used());
    begin_ += bytes;
    if (begin_ == end_) begin_ = end_ = (end_ + capacity_ - 1) & ~std::uint64_t{capacity_ - 1};
  }
  // The same, but what has been written into free() ahead of append() stays where it is.
  void consume_in_place(std::size_t bytes) noexcept {
    STRATA_DCHECK(bytes <= used(), bytes, used());
    begin_ += bytes;
  }

  // What it has of memory, which it gets again where it is written to. The content is zeros then.
  void give_back_memory() noexcept;

  // Positions in the stream never repeat: what was appended before end() has been consumed once
  // begin() has reached it.
  [[nodiscard]] std::uint64_t begin() const noexcept { return begin_; }
  [[nodiscard]] std::uint64_t end() const noexcept { return end_; }
  // Overwrites content that was appended without being written.
  void fill(std::uint64_t position, const void* from, std::size_t bytes) noexcept {
    STRATA_DCHECK(position >= begin_, position, begin_);
    STRATA_DCHECK(position + bytes <= end_, position, bytes, end_);
    if (bytes != 0) std::memcpy(at(position), from, bytes);
  }

 private:
  [[nodiscard]] std::byte* at(std::uint64_t position) const noexcept {
    return memory_ + static_cast<std::size_t>(position & (capacity_ - 1));
  }

  std::size_t capacity_;
  std::byte* memory_ = nullptr;
  std::uint64_t begin_ = 0;
  std::uint64_t end_ = 0;
};

}  // namespace strata::net
