// SPDX-License-Identifier: Apache-2.0
#include "apps/radixsort/passes.hpp"

#include <algorithm>
#include <utility>

namespace radixsort {
namespace {

constexpr std::size_t cache_line_positions = 64 / sizeof(position);

}  // namespace

passes::passes(std::span<key> keys, std::span<key> other, unsigned threads, unsigned radix_bits)
    : threads_(threads),
      radix_bits_(radix_bits),
      loops_(loops_for(radix_bits)),
      row_size_(std::max(std::size_t{1} << radix_bits, cache_line_positions)),
      rows_(threads * row_size_),
      columns_(row_size_),
      from_(keys),
      to_(other) {}

unsigned passes::number_for(unsigned radix_bits) { return (32 + radix_bits - 1) / radix_bits; }

std::span<const key> passes::keys_of(unsigned thread) const noexcept {
  const std::size_t begin = from_.size() * thread / threads_;
  const std::size_t end = from_.size() * (thread + 1) / threads_;
  return from_.subspan(begin, end - begin);
}

void passes::count(unsigned thread) noexcept {
  loops_.count(keys_of(thread), shift_, row_of(thread));
}

// A digit's keys lie together, those of thread 0 first, which is what makes the sort stable. Row by
// row, because that is how the table lies in memory; threads * radix additions.
void passes::merge() noexcept {
  std::fill(columns_.begin(), columns_.end(), 0);
  for (unsigned t = 0; t < threads_; ++t) {
    position* const row = row_of(t);
    for (std::size_t d = 0; d < row_size_; ++d) columns_[d] += std::exchange(row[d], columns_[d]);
  }
  position before = 0;
  for (position& column : columns_) before += std::exchange(column, before);
}

void passes::transfer(unsigned thread) noexcept {
  position* const row = row_of(thread);
  for (std::size_t d = 0; d < row_size_; ++d) row[d] += columns_[d];
  loops_.move(keys_of(thread), shift_, row, to_.data());
}

void passes::swap() noexcept {
  std::swap(from_, to_);
  shift_ += radix_bits_;
}

void passes::serial_part() noexcept {
  merged_ ? swap() : merge();
  merged_ = !merged_;
}

}  // namespace radixsort
