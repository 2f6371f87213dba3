// SPDX-License-Identifier: Apache-2.0
// Bodies that attract each other, by J. Barnes and P. Hut, 1986, doi:10.1038/324446a0: a tree of
// cells, whose parts are made, and forces summed up, by a loop of the caller's. With any loop the
// same bits come out.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "programs.hpp"
#include "strata/parallel.hpp"

namespace programs {

struct vec {
  double x = 0, y = 0, z = 0;
  friend vec operator+(vec a, vec b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
  friend vec operator-(vec a, vec b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
  friend vec operator*(double f, vec a) { return {f * a.x, f * a.y, f * a.z}; }
  [[nodiscard]] double square() const { return x * x + y * y + z * z; }
  friend bool operator==(const vec&, const vec&) = default;
};

inline constexpr double step = 1e-3, opening = 0.5, softening = 1e-4;  // all bodies have mass 1
inline constexpr std::size_t leaf_bodies = 8;

inline std::vector<vec> places_at_first(std::size_t n) {
  std::vector<vec> all(n);
  const auto draw = [](std::uint64_t i) { return static_cast<double>(mixed(i) >> 11) * 0x1p-53; };
  for (std::size_t i = 0; i < n; ++i) {
    const vec v{draw(3 * i), draw(3 * i + 1), draw(3 * i + 2)};
    all[i] = v.square() * v;  // denser near a corner
  }
  return all;
}

// A cube, and what is in it: cells of half its width, or a few bodies.
struct cell {
  vec centre_of_mass{};
  double mass = 0, width = 0;
  std::array<std::unique_ptr<cell>, 8> parts{};
  std::vector<vec> bodies{};
};

// What is computed of numbers is compiled once, so that it comes out the same for all.
inline void balance(cell& c) {
  vec sum;
  for (const vec& b : c.bodies) sum = sum + b;
  for (const auto& part : c.parts)
    if (part != nullptr) sum = sum + part->mass * part->centre_of_mass;
  c.centre_of_mass = 1 / c.mass * sum;
}

// Of at least one body; `loop` calls for each of the eight parts, at the same time or not.
template <class Loop>
std::unique_ptr<cell> make_cell(std::vector<vec> bodies, vec corner, double width,
                                const Loop& loop) {
  auto made = std::make_unique<cell>();
  made->width = width;
  made->mass = static_cast<double>(bodies.size());
  if (bodies.size() <= leaf_bodies) {
    made->bodies = std::move(bodies);
    balance(*made);
    return made;
  }
  const double half = width / 2;
  const vec middle = corner + vec{half, half, half};
  std::array<std::vector<vec>, 8> within;
  for (const vec& b : bodies)
    within[std::size_t{b.x >= middle.x} + 2 * std::size_t{b.y >= middle.y} +
           4 * std::size_t{b.z >= middle.z}]
        .push_back(b);
  const bool alone = bodies.size() < 500;
  bodies = {};
  const auto make_part = [&](std::size_t i) {
    if (within[i].empty()) return;
    const auto upper = [&](std::size_t bit) { return (i & bit) != 0 ? half : 0; };
    const vec at = corner + vec{upper(1), upper(2), upper(4)};
    made->parts[i] = make_cell(std::move(within[i]), at, half, loop);
  };
  if (alone) {
    for (std::size_t i = 0; i < 8; ++i) make_part(i);
  } else {
    loop(std::size_t{8}, make_part);
  }
  balance(*made);
  return made;
}

inline vec pull(vec towards, double mass, vec at) {
  const vec d = towards - at;
  const double square = d.square() + softening;
  return mass / (square * std::sqrt(square)) * d;
}

inline vec force(const cell& c, vec at) {
  const double square = (c.centre_of_mass - at).square();
  if (c.bodies.empty() && c.width * c.width < opening * opening * square)
    return pull(c.centre_of_mass, c.mass, at);
  vec sum;
  for (const vec& b : c.bodies) sum = sum + pull(b, 1, at);
  for (const auto& part : c.parts)
    if (part != nullptr) sum = sum + force(*part, at);
  return sum;
}

inline void accelerate(vec& speed, const cell& root, vec at) {
  speed = speed + step * force(root, at);
}
inline void advance(vec& place, vec speed) { place = place + step * speed; }

// Moves bodies from `first` on by a step, of which `speeds` has their speeds.
template <class Loop>
void move(std::span<vec> places, std::size_t first, std::span<vec> speeds, const Loop& loop) {
  double width = 0;
  vec corner = places[0];
  for (const vec& p : places)
    corner = {std::min(corner.x, p.x), std::min(corner.y, p.y), std::min(corner.z, p.z)};
  for (const vec& p : places) {
    const vec d = p - corner;
    width = std::max({width, d.x, d.y, d.z});
  }
  const auto root = make_cell({places.begin(), places.end()}, corner, width, loop);
  loop(speeds.size(), [&](std::size_t i) { accelerate(speeds[i], *root, places[first + i]); });
  for (std::size_t i = 0; i < speeds.size(); ++i) advance(places[first + i], speeds[i]);
}

inline constexpr auto serially = [](std::size_t n, const auto& body) {
  for (std::size_t i = 0; i < n; ++i) body(i);
};
inline constexpr auto by_workers = [](std::size_t n, const auto& body) {
  strata::parallel_for(std::size_t{0}, n, body);
};

template <class Loop>
std::vector<vec> simulate(std::size_t n, unsigned steps, const Loop& loop) {
  std::vector<vec> places = places_at_first(n), speeds(n);
  for (unsigned i = 0; i < steps; ++i) move(places, 0, speeds, loop);
  return places;
}

}  // namespace programs
