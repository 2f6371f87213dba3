// SPDX-License-Identifier: Apache-2.0
// Sequences laid out as the kernels read them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "apps/align/kernel.hpp"

namespace align {

/// A stretch of letters, read forwards or backwards.
struct letters_view {
  std::span<const std::uint8_t> codes;
  bool reversed = false;

  [[nodiscard]] std::ptrdiff_t size() const { return static_cast<std::ptrdiff_t>(codes.size()); }
  [[nodiscard]] std::uint8_t operator[](std::ptrdiff_t i) const {
    return codes[static_cast<std::size_t>(reversed ? size() - 1 - i : i)];
  }
  [[nodiscard]] letters_view sub(std::ptrdiff_t from, std::ptrdiff_t count) const {
    const std::ptrdiff_t start = reversed ? size() - from - count : from;
    return {codes.subspan(static_cast<std::size_t>(start), static_cast<std::size_t>(count)),
            reversed};
  }
  [[nodiscard]] letters_view backwards() const { return {codes, !reversed}; }
};

/// The reference as two arrays, even and odd columns: lanes lag two columns each, so one load gives
/// all lanes their letters.
class packed_reference {
 public:
  packed_reference(letters_view ref, int lanes) : pad_(lanes + 8) {
    for (int parity = 0; parity < 2; ++parity) {
      auto& half = half_[parity];
      half.assign(static_cast<std::size_t>(ref.size() / 2 + 2 * pad_ + 2), letter_ref_padding);
      std::uint8_t* to = half.data() + pad_;
      for (std::ptrdiff_t j = parity; j < ref.size(); j += 2)
        *to++ = ref[j] < 4 ? ref[j] : letter_ref_ambiguous;
    }
  }
  [[nodiscard]] const std::uint8_t* even() const { return half_[0].data() + pad_; }
  [[nodiscard]] const std::uint8_t* odd() const { return half_[1].data() + pad_; }

 private:
  std::ptrdiff_t pad_;
  std::vector<std::uint8_t> half_[2];
};

/// The query cut into strips of lanes * R rows; the last strip has the smallest R that covers what
/// is left.
class packed_query {
 public:
  struct strip {
    std::ptrdiff_t first_row;
    std::ptrdiff_t rows;  ///< real ones
    int height_index;     ///< R = 1 << height_index
    std::size_t letters_at;
  };

  packed_query(letters_view query, int lanes, int height_index) {
    for (std::ptrdiff_t row = 0; row < query.size();) {
      int height = height_index;
      while (height > 0 && query.size() - row <= static_cast<std::ptrdiff_t>(lanes) << (height - 1))
        --height;
      const int r = 1 << height;
      const std::ptrdiff_t covered = static_cast<std::ptrdiff_t>(lanes) * r;
      const std::ptrdiff_t left = query.size() - row;
      const std::size_t begin = lines_.size() * line::bytes;
      strips_.push_back({row, left < covered ? left : covered, height, begin});
      lines_.resize(lines_.size() +
                    (static_cast<std::size_t>(covered) + line::bytes - 1) / line::bytes);
      auto* to = reinterpret_cast<std::uint8_t*>(lines_.data()) + begin;
      for (int i = 0; i < r; ++i) {
        for (int p = 0; p < lanes; ++p) {
          const std::ptrdiff_t at = row + static_cast<std::ptrdiff_t>(lanes - 1 - p) * r + i;
          *to++ = at < query.size() ? query[at] : letter_query_padding;
        }
      }
      row += covered;
    }
  }
  [[nodiscard]] const std::vector<strip>& strips() const { return strips_; }
  [[nodiscard]] const std::uint8_t* letters(const strip& s) const {
    return reinterpret_cast<const std::uint8_t*>(lines_.data()) + s.letters_at;
  }

 private:
  // Every step of a kernel loads a strip's letters, one vector for each row of a lane: vectors that
  // cross cache lines took 7 % of the time of a comparison.
  struct alignas(64) line {
    static constexpr std::size_t bytes = 64;
    std::uint8_t letters[bytes];
  };

  std::vector<strip> strips_;
  std::vector<line> lines_;
};

}  // namespace align
