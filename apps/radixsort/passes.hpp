// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "apps/radixsort/digits.hpp"
#include "apps/radixsort/keys.hpp"

namespace radixsort {

// A stable radix sort, lowest digit first, cut into the parts that the paper's threads do (Oguma
// and Nakayama, "Lesser Bear: a lightweight process library for SMP computers", section 4.1). Each
// pass:
//
//   every thread: count()     its keys by digit
//   one thread:   merge()     the counts into the places where each thread's keys of each digit go
//   every thread: transfer()  its keys to their places
//   one thread:   swap()      source and destination
//
// Between two lines all threads have to wait for each other. Who does that, and how, is not known
// here: see sort.hpp.
class passes {
 public:
  // Sorts keys; other has as many. The result is in one of them: sorted(). Both must outlive this.
  passes(std::span<key> keys, std::span<key> other, unsigned threads, unsigned radix_bits);

  // ceil(32 / bits)
  static unsigned number_for(unsigned radix_bits);

  void count(unsigned thread) noexcept;
  void merge() noexcept;
  void transfer(unsigned thread) noexcept;
  void swap() noexcept;

  // Called by one thread while the others wait: what comes next of merge() and swap().
  void serial_part() noexcept;

  // Changes in swap().
  bool done() const noexcept { return shift_ >= 32; }
  unsigned threads() const noexcept { return threads_; }
  std::span<const key> sorted() const noexcept { return from_; }

 private:
  std::span<const key> keys_of(unsigned thread) const noexcept;
  position* row_of(unsigned thread) noexcept { return rows_.data() + thread * row_size_; }

  const unsigned threads_;
  const unsigned radix_bits_;
  const digit_loops& loops_;
  // A row for each thread, a column for each digit: first the number of the thread's keys with that
  // digit, after merge() the place of the first of them. Rows do not share cache lines.
  const std::size_t row_size_;
  std::vector<position> rows_;
  std::vector<position> columns_;  // merge() only
  std::span<key> from_;
  std::span<key> to_;
  unsigned shift_ = 0;
  bool merged_ = false;
};

}  // namespace radixsort
