// SPDX-License-Identifier: Apache-2.0
#include "apps/radixsort/digits.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "apps/radixsort/vector_loops.hpp"

namespace radixsort {
namespace {

// The number of bits is known to the compiler, so that tables lie on the stack, in reach of one
// instruction.
template <unsigned Bits>
struct loops {
  static constexpr std::size_t radix = std::size_t{1} << Bits;

  static key digit(key k, unsigned shift) { return (k >> shift) & (radix - 1); }

  static void count(std::span<const key> keys, unsigned shift, position* counts) noexcept {
    if constexpr (Bits <= 2) {
      count_bits(keys, shift, counts);
    } else {
      count_in_tables(keys, shift, counts);
    }
  }

  static void move(std::span<const key> keys, unsigned shift, const position* first,
                   key* to) noexcept {
    std::array<position, radix> next;
    std::copy(first, first + radix, next.begin());
    const auto put = [&](key k) { to[next[digit(k, shift)]++] = k; };
    // Stores are done in order: all wait for one whose line is with another core, or was driven out
    // of the cache by the ends of the other lists, which are a power of two apart. So a line
    // further on is asked for, to write to. One key in four does that: of the sixteen of a line
    // one is nearly always among them. Behind the last list it is an address that nobody has, which
    // is allowed.
    constexpr std::size_t each = 4;
    std::size_t i = 0;
    for (; i + each <= keys.size(); i += each) {
      __builtin_prefetch(to + next[digit(keys[i], shift)] + lines_ahead * line_keys, 1);
      for (std::size_t j = 0; j < each; ++j) put(keys[i + j]);
    }
    for (; i < keys.size(); ++i) put(keys[i]);
  }

 private:
  static constexpr std::size_t lines_ahead = 4;

  // One or two bits: sums, which the compiler makes of several keys at once.
  static void count_bits(std::span<const key> keys, unsigned shift, position* counts) noexcept {
    position low = 0;
    position high = 0;
    position both = 0;
    for (const key k : keys) {
      const std::size_t d = digit(k, shift);
      low += d & 1;
      high += d >> 1;
      both += d & (d >> 1);
    }
    counts[0] = static_cast<position>(keys.size()) - low - high + both;
    counts[1] = low - both;
    if constexpr (Bits == 2) {
      counts[2] = high - both;
      counts[3] = both;
    }
  }

  static void count_in_tables(std::span<const key> keys, unsigned shift,
                              position* counts) noexcept {
    // Keys that follow each other often have the same digit when there are few; adding to the same
    // word again has to wait for the first addition. Several tables take turns.
    constexpr std::size_t tables = Bits <= 6 ? 4 : 2;
    std::array<std::array<position, radix>, tables> seen{};
    std::size_t i = 0;
    for (; i + tables <= keys.size(); i += tables) {
      for (std::size_t t = 0; t < tables; ++t) ++seen[t][digit(keys[i + t], shift)];
    }
    for (; i < keys.size(); ++i) ++seen[0][digit(keys[i], shift)];
    for (std::size_t d = 0; d < radix; ++d) {
      counts[d] = 0;
      for (const auto& table : seen) counts[d] += table[d];
    }
  }
};

// Two digits: every key is written to the end of both lists, and the end of one moves. That has no
// branch and no address that waits for memory; but it writes behind the end, where a
// neighbour's keys go, so the lists are kept here for a while first. Half the time of the loop
// above.
void move_bits(std::span<const key> keys, unsigned shift, const position* first, key* to) noexcept {
  constexpr std::size_t piece = 512;
  std::array<key, piece> zeros;
  std::array<key, piece> ones;
  key* zeros_to = to + first[0];
  key* ones_to = to + first[1];
  while (!keys.empty()) {
    const std::span<const key> now = keys.first(std::min(piece, keys.size()));
    std::size_t one_count = 0;
    for (std::size_t i = 0; i < now.size(); ++i) {
      const key k = now[i];
      zeros[i - one_count] = k;
      ones[one_count] = k;
      one_count += (k >> shift) & 1;
    }
    zeros_to = std::copy_n(zeros.begin(), now.size() - one_count, zeros_to);
    ones_to = std::copy_n(ones.begin(), one_count, ones_to);
    keys = keys.subspan(now.size());
  }
}

template <unsigned... Index>
constexpr std::array<digit_loops, sizeof...(Index)> make_table(
    std::integer_sequence<unsigned, Index...>) {
  return {
      digit_loops{&loops<Index + 1>::count, Index == 0 ? &move_bits : &loops<Index + 1>::move}...};
}
constexpr auto plain = make_table(std::make_integer_sequence<unsigned, radix_bits_max>());

auto best_here() {
  auto loops = plain;
  for (unsigned bits = 1; bits <= radix_bits_max; ++bits) {
    const digit_loops by_vectors = vector_loops(bits);
    if (by_vectors.count != nullptr) loops[bits - 1].count = by_vectors.count;
    if (by_vectors.move != nullptr) loops[bits - 1].move = by_vectors.move;
  }
  return loops;
}

}  // namespace

const digit_loops& loops_for(unsigned radix_bits) {
  static const auto best = best_here();
  return best.at(radix_bits - 1);
}

const digit_loops& plain_loops_for(unsigned radix_bits) { return plain.at(radix_bits - 1); }

}  // namespace radixsort
