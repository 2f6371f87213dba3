// SPDX-License-Identifier: Apache-2.0
// Value noise in octaves (K. Perlin, "An image synthesizer", 1985), with noise that bends where it
// is looked up.
#include "apps/mapview/terrain.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace mapview {
namespace {

float lattice(std::int32_t x, std::int32_t y, std::uint32_t salt) {
  std::uint32_t h = static_cast<std::uint32_t>(x) * 0x9E3779B1U ^
                    static_cast<std::uint32_t>(y) * 0x85EBCA77U ^ salt * 0xC2B2AE3DU;
  h ^= h >> 15;
  h *= 0x2C1B3C6DU;
  h ^= h >> 12;
  h *= 0x297A2D39U;
  h ^= h >> 15;
  return static_cast<float>(h >> 8) * (1.0F / 16'777'216.0F);
}

float noise(float x, float y, std::uint32_t salt) {
  const float fx = std::floor(x), fy = std::floor(y);
  const auto ix = static_cast<std::int32_t>(fx), iy = static_cast<std::int32_t>(fy);
  const auto smooth = [](float t) { return t * t * (3 - 2 * t); };
  const float u = smooth(x - fx), v = smooth(y - fy);
  const float top = std::lerp(lattice(ix, iy, salt), lattice(ix + 1, iy, salt), u);
  const float low = std::lerp(lattice(ix, iy + 1, salt), lattice(ix + 1, iy + 1, salt), u);
  return std::lerp(top, low, v);
}

float height_at(float x, float y, int octaves) {
  const float bend = noise(x * 1.7F, y * 1.7F, 9) - 0.5F;
  x += bend * 0.6F;
  y -= bend * 0.6F;
  float sum = 0, weight = 0.5F;
  for (int i = 0; i < octaves; ++i, weight *= 0.5F, x *= 2.03F, y *= 2.03F)
    sum += weight * noise(x, y, static_cast<std::uint32_t>(i));
  return sum;
}

struct colour {
  float r, g, b;
};
colour mixed(const colour& a, const colour& b, float t) {
  return {std::lerp(a.r, b.r, t), std::lerp(a.g, b.g, t), std::lerp(a.b, b.b, t)};
}

// Deep sea to snow.
colour colour_of(float h) {
  static constexpr std::array<std::pair<float, colour>, 8> bands{{{0.25F, {12, 38, 92}},
                                                                  {0.44F, {38, 96, 160}},
                                                                  {0.475F, {120, 180, 200}},
                                                                  {0.49F, {214, 202, 150}},
                                                                  {0.53F, {96, 146, 70}},
                                                                  {0.60F, {58, 104, 52}},
                                                                  {0.68F, {122, 106, 84}},
                                                                  {0.76F, {240, 240, 244}}}};
  for (std::size_t i = 1; i < bands.size(); ++i) {
    if (h < bands[i].first) {
      const float t = (h - bands[i - 1].first) / (bands[i].first - bands[i - 1].first);
      return mixed(bands[i - 1].second, bands[i].second, std::clamp(t, 0.0F, 1.0F));
    }
  }
  return bands.back().second;
}

}  // namespace

picture draw_terrain(std::uint32_t width, std::uint32_t height, const rectangle& area) {
  picture p(area.width, area.height);
  const float scale = 6.0F / static_cast<float>(std::min(width, height));
  const int octaves = std::clamp(
      static_cast<int>(std::log2(static_cast<float>(std::min(width, height)))) - 2, 3, 12);
  for (std::uint32_t j = 0; j < area.height; ++j) {
    const float y = static_cast<float>(area.y + j) * scale;
    float left = height_at((static_cast<float>(area.x) - 1) * scale, y, octaves);
    for (std::uint32_t i = 0; i < area.width; ++i) {
      const float h = height_at(static_cast<float>(area.x + i) * scale, y, octaves);
      // Light from the west; the sea is flat.
      const float slope = h > 0.475F ? (h - left) / scale : 0;
      const float light = std::clamp(1 + slope * 0.35F, 0.55F, 1.35F);
      left = h;
      const colour c = colour_of(h);
      std::uint8_t* const to = p.at(i, j);
      to[0] = static_cast<std::uint8_t>(std::clamp(c.r * light, 0.0F, 255.0F));
      to[1] = static_cast<std::uint8_t>(std::clamp(c.g * light, 0.0F, 255.0F));
      to[2] = static_cast<std::uint8_t>(std::clamp(c.b * light, 0.0F, 255.0F));
    }
  }
  return p;
}

}  // namespace mapview
