// SPDX-License-Identifier: Apache-2.0
#include "apps/mapview/scaling.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

namespace mapview {
namespace {

// How much of each source pixel each target pixel covers, along one axis.
struct covers {
  struct cover {
    std::uint32_t first;     // source pixel
    std::size_t begin, end;  // of its weights
  };
  std::vector<cover> of;
  std::vector<float> weights;  // of each cover: sum 1

  [[nodiscard]] std::uint32_t first() const { return of.front().first; }
  [[nodiscard]] std::uint32_t end() const {
    return of.back().first + static_cast<std::uint32_t>(of.back().end - of.back().begin);
  }
};

covers covers_of(double begin, double length, std::uint32_t targets, std::uint32_t size) {
  covers all;
  all.of.reserve(targets);
  const double step = length / targets;
  for (std::uint32_t i = 0; i < targets; ++i) {
    const double from = std::clamp(begin + i * step, 0.0, static_cast<double>(size));
    const double to = std::clamp(begin + (i + 1) * step, from, static_cast<double>(size));
    const auto first = std::min(static_cast<std::uint32_t>(from), size - 1);
    const auto last = std::clamp(static_cast<std::uint32_t>(std::ceil(to)), first + 1, size);
    const std::size_t at = all.weights.size();
    double sum = 0;
    for (std::uint32_t s = first; s < last; ++s) {
      const double w = std::max(std::min(to, s + 1.0) - std::max(from, double(s)), 1e-9);
      all.weights.push_back(static_cast<float>(w));
      sum += w;
    }
    for (std::size_t k = at; k < all.weights.size(); ++k)
      all.weights[k] = static_cast<float>(all.weights[k] / sum);
    all.of.push_back({first, at, all.weights.size()});
  }
  return all;
}

// One line of so many pixels from two, each pixel the mean of four: the usual case, as a decoder
// goes no further than an eighth, and maps are looked at in powers of two.
void halve(const std::uint8_t* upper, std::size_t line_bytes, std::uint8_t* to,
           std::uint32_t width) {
  const std::uint8_t* const lower = upper + line_bytes;
  for (std::size_t i = 0; i < std::size_t{3} * width; i += 3) {
    for (std::size_t c = i; c < i + 3; ++c) {
      const unsigned sum = upper[i + c] + upper[i + c + 3] + lower[i + c] + lower[i + c + 3];
      to[c] = static_cast<std::uint8_t>((sum + 2) / 4);
    }
  }
}

// The same, where it will not remain at one time: what lies in the middle between two values goes
// up and down in turns, as in libjpeg's jcsample.c.
void halve_evenly(const std::uint8_t* upper, std::size_t line_bytes, std::uint8_t* to,
                  std::uint32_t width) {
  const std::uint8_t* const lower = upper + line_bytes;
  unsigned half = 1;
  for (std::size_t i = 0; i < std::size_t{3} * width; i += 3, half ^= 3) {
    for (std::size_t c = i; c < i + 3; ++c) {
      const unsigned sum = upper[i + c] + upper[i + c + 3] + lower[i + c] + lower[i + c + 3];
      to[c] = static_cast<std::uint8_t>((sum + half) / 4);
    }
  }
}

}  // namespace

void draw_scaled(const picture& from, const part& of, picture& into, std::uint32_t x,
                 std::uint32_t y, std::uint32_t width, std::uint32_t height) {
  if (width == 0 || height == 0) return;
  const bool whole = of.x >= 0 && of.y >= 0 && of.x + of.width <= from.width &&
                     of.y + of.height <= from.height && of.x == std::floor(of.x) &&
                     of.y == std::floor(of.y);
  if (whole && of.width == width && of.height == height) {
    for (std::uint32_t j = 0; j < height; ++j)
      std::memcpy(into.at(x, y + j),
                  from.at(static_cast<std::uint32_t>(of.x), static_cast<std::uint32_t>(of.y) + j),
                  std::size_t{3} * width);
    return;
  }
  if (whole && of.width == 2.0 * width && of.height == 2.0 * height) {
    for (std::uint32_t j = 0; j < height; ++j)
      halve(from.at(static_cast<std::uint32_t>(of.x), static_cast<std::uint32_t>(of.y) + 2 * j),
            std::size_t{3} * from.width, into.at(x, y + j), width);
    return;
  }
  const covers across = covers_of(of.x, of.width, width, from.width);
  const covers down = covers_of(of.y, of.height, height, from.height);
  // First down, all the columns that are needed at once; then across.
  const std::uint32_t left = across.first();
  std::vector<float> line(std::size_t{3} * (across.end() - left));
  for (std::uint32_t j = 0; j < height; ++j) {
    const covers::cover& rows = down.of[j];
    std::fill(line.begin(), line.end(), 0.5F);  // so that what is cut off is rounded
    for (std::size_t v = rows.begin; v < rows.end; ++v) {
      const std::uint8_t* const source =
          from.at(left, rows.first + static_cast<std::uint32_t>(v - rows.begin));
      const float weight = down.weights[v];
      for (std::size_t k = 0; k < line.size(); ++k)
        line[k] += weight * static_cast<float>(source[k]);
    }
    std::uint8_t* to = into.at(x, y + j);
    for (std::uint32_t i = 0; i < width; ++i) {
      const covers::cover& columns = across.of[i];
      const float* pixel = &line[std::size_t{3} * (columns.first - left)];
      float sum[3] = {0, 0, 0};
      for (std::size_t u = columns.begin; u < columns.end; ++u) {
        for (float& s : sum) s += across.weights[u] * *pixel++;
      }
      for (const float s : sum) *to++ = static_cast<std::uint8_t>(std::clamp(s, 0.0F, 255.0F));
    }
  }
}

void draw_halved(const picture& from, double last_column, double last_row, picture& into,
                 std::uint32_t x, std::uint32_t y) {
  // Pairs of columns and rows in which all pixels count the same.
  const auto plain = [](std::uint32_t length, double last) {
    return length / 2 - (length % 2 == 0 && last < 1 ? 1 : 0);
  };
  const std::uint32_t columns = plain(from.width, last_column), rows = plain(from.height, last_row);
  const auto weight = [](std::uint32_t at, std::uint32_t length, double last) {
    return at + 1 < length ? 1.0 : last;
  };
  for (std::uint32_t j = 0; j < (from.height + 1) / 2; ++j) {
    std::uint8_t* const to = into.at(x, y + j);
    std::uint32_t i = 0;
    if (j < rows) {
      halve_evenly(from.at(0, 2 * j), std::size_t{3} * from.width, to, columns);
      i = columns;
    }
    for (; i < (from.width + 1) / 2; ++i) {
      double sum[3] = {0, 0, 0}, all = 0;
      for (std::uint32_t v = 2 * j; v < std::min(2 * j + 2, from.height); ++v) {
        for (std::uint32_t u = 2 * i; u < std::min(2 * i + 2, from.width); ++u) {
          const double w = weight(u, from.width, last_column) * weight(v, from.height, last_row);
          all += w;
          for (int c = 0; c < 3; ++c) sum[c] += w * from.at(u, v)[c];
        }
      }
      for (int c = 0; c < 3; ++c)
        to[std::size_t{3} * i + static_cast<std::size_t>(c)] =
            static_cast<std::uint8_t>(std::lround(sum[c] / all));
    }
  }
}

}  // namespace mapview
