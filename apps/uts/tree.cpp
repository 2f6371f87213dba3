// SPDX-License-Identifier: Apache-2.0
#include "apps/uts/tree.hpp"

#include <nettle/sha1.h>

#include <cmath>

namespace uts {
namespace {

void put_big_endian(std::uint8_t* to, std::uint32_t value) {
  to[0] = static_cast<std::uint8_t>(value >> 24);
  to[1] = static_cast<std::uint8_t>(value >> 16);
  to[2] = static_cast<std::uint8_t>(value >> 8);
  to[3] = static_cast<std::uint8_t>(value);
}

template <std::size_t Bytes>
node hashed(const std::array<std::uint8_t, Bytes>& message, int depth) {
  node n;
  n.depth = depth;
  sha1_ctx context;
  sha1_init(&context);
  sha1_update(&context, message.size(), message.data());
  sha1_digest(&context, n.state.size(), n.state.data());
  return n;
}

// Uniform in [0, 1): the last 31 bits of the node.
double probability(const node& n) {
  const std::uint32_t bits = static_cast<std::uint32_t>(n.state[16]) << 24 |
                             static_cast<std::uint32_t>(n.state[17]) << 16 |
                             static_cast<std::uint32_t>(n.state[18]) << 8 | n.state[19];
  return static_cast<double>(bits & 0x7fffffffU) / 2147483648.0;
}

// The operations and their order are those of the original program: the counts depend on every bit.
unsigned geometric_children(const parameters& tree, const node& n) {
  double expected = tree.root_children;
  if (n.depth > 0) {
    const double depth = n.depth;
    const double depth_limit = tree.depth;
    switch (tree.shape) {
      case tree_shape::exponential:
        expected *= std::pow(depth, -std::log(tree.root_children) / std::log(depth_limit));
        break;
      case tree_shape::cyclic:
        expected =
            n.depth > 5 * tree.depth
                ? 0.0
                : std::pow(expected, std::sin(2.0 * 3.141592653589793 * depth / depth_limit));
        break;
      case tree_shape::fixed:
        if (n.depth >= tree.depth) expected = 0.0;
        break;
      case tree_shape::linear:
        expected *= 1.0 - depth / depth_limit;
        break;
    }
  }
  const double p = 1.0 / (1.0 + expected);
  const double children = std::floor(std::log(1.0 - probability(n)) / std::log(1.0 - p));
  // Also false for a NaN, which no valid parameters give.
  if (!(children > 0)) return 0;
  return children < children_max ? static_cast<unsigned>(children) : children_max;
}

unsigned binomial_children(const parameters& tree, const node& n) {
  return probability(n) < tree.inner_probability ? static_cast<unsigned>(tree.inner_children) : 0;
}

// Published with the original program; T1 to T5 are recomputed by the tests.
constexpr parameters geometric(tree_shape shape, int depth, double root_children, int seed) {
  parameters tree;
  tree.shape = shape;
  tree.depth = depth;
  tree.root_children = root_children;
  tree.seed = seed;
  return tree;
}

constexpr parameters t3() {
  parameters tree;
  tree.type = tree_type::binomial;
  tree.root_children = 2000;
  tree.inner_probability = 0.124875;
  tree.inner_children = 8;
  tree.seed = 42;
  return tree;
}

constexpr parameters t4() {
  parameters tree = geometric(tree_shape::linear, 16, 6, 1);
  tree.type = tree_type::hybrid;
  tree.inner_probability = 0.234375;
  tree.inner_children = 4;
  return tree;
}

// Published with the original program.
constexpr std::array<sample, 6> samples = {{
    {"T1", geometric(tree_shape::fixed, 10, 4, 19), {4130071, 3305118, 10}},
    {"T2", geometric(tree_shape::cyclic, 16, 6, 502), {4117769, 2342762, 81}},
    {"T3", t3(), {4112897, 3599034, 1572}},
    {"T4", t4(), {4132453, 3108986, 134}},
    {"T5", geometric(tree_shape::linear, 20, 4, 34), {4147582, 2181318, 20}},
    {"T1L", geometric(tree_shape::fixed, 13, 4, 29), {102181082, 81746377, 13}},
}};

}  // namespace

node root(const parameters& tree) {
  std::array<std::uint8_t, 20> message{};
  put_big_endian(&message[16], static_cast<std::uint32_t>(tree.seed));
  return hashed(message, 0);
}

node child(const node& parent, unsigned index) {
  std::array<std::uint8_t, 24> message;
  std::copy(parent.state.begin(), parent.state.end(), message.begin());
  put_big_endian(&message[20], index);
  return hashed(message, parent.depth + 1);
}

unsigned child_count(const parameters& tree, const node& n) {
  switch (tree.type) {
    case tree_type::binomial:
      return n.depth == 0 ? static_cast<unsigned>(tree.root_children) : binomial_children(tree, n);
    case tree_type::geometric:
      return geometric_children(tree, n);
    case tree_type::hybrid:
      return n.depth < 0.5 * tree.depth ? geometric_children(tree, n) : binomial_children(tree, n);
    case tree_type::balanced:
      return n.depth < tree.depth ? static_cast<unsigned>(tree.root_children) : 0;
  }
  return 0;
}

const sample* find_sample(std::string_view name) {
  const auto found =
      std::find_if(samples.begin(), samples.end(), [&](const sample& s) { return s.name == name; });
  return found == samples.end() ? nullptr : &*found;
}

const sample* find_sample(const parameters& tree) {
  const auto found =
      std::find_if(samples.begin(), samples.end(), [&](const sample& s) { return s.tree == tree; });
  return found == samples.end() ? nullptr : &*found;
}

std::string sample_names() {
  std::string names;
  for (const sample& s : samples) {
    if (!names.empty()) names += ", ";
    names += s.name;
  }
  return names;
}

}  // namespace uts
