// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// Unbalanced Tree Search (Olivier et al., LCPC 2006, doi:10.1007/978-3-540-72521-3_18): count the
// nodes of a tree that exists only as a rule. A node is 20 bytes of SHA-1; child i is the hash of
// its parent and i; how many children a node has follows from its own bytes. Nobody can foresee
// where the work is.
namespace uts {

enum class tree_type : int { binomial = 0, geometric = 1, hybrid = 2, balanced = 3 };  // -t
enum class tree_shape : int { linear = 0, exponential = 1, cyclic = 2, fixed = 3 };    // -a

// The defaults are those of the original program.
struct parameters {
  tree_type type = tree_type::geometric;  // -t
  tree_shape shape =
      tree_shape::linear;      // -a: how the expected number of children shrinks with depth
  int depth = 6;               // -d
  int seed = 0;                // -r
  int inner_children = 4;      // -m: binomial, how many children an inner node has
  double root_children = 4.0;  // -b
  double inner_probability = 15.0 / 64.0;  // -q: binomial, that a node is an inner one

  bool operator==(const parameters&) const = default;
};

// A geometric node never has more children.
inline constexpr unsigned children_max = 100;

struct node {
  std::array<std::uint8_t, 20> state;
  int depth;
};

node root(const parameters& tree);
node child(const node& parent, unsigned index);
unsigned child_count(const parameters& tree, const node& n);

// What is found in a subtree. No initializers: frames hold several that are written before they are
// read.
struct tally {
  std::uint64_t nodes;
  std::uint64_t leaves;
  std::uint64_t depth_max;

  tally& operator+=(const tally& other) {
    nodes += other.nodes;
    leaves += other.leaves;
    depth_max = std::max(depth_max, other.depth_max);
    return *this;
  }
  bool operator==(const tally&) const = default;
};

// The node itself, which has this many children.
inline tally tally_of(const node& n, unsigned children) {
  return {1, children == 0 ? 1U : 0U, static_cast<std::uint64_t>(n.depth)};
}

// The way down is kept apart from the stack: it may be a million nodes long.
inline tally serial(const parameters& tree) {
  struct place {
    node parent;
    unsigned next, children;
  };
  tally found{};
  std::vector<place> way;
  const auto enter = [&](const node& n) {
    const unsigned children = child_count(tree, n);
    found += tally_of(n, children);
    if (children > 0) way.push_back({n, 0, children});
  };
  enter(root(tree));
  while (!way.empty()) {
    place& last = way.back();
    const node n = child(last.parent, last.next++);
    if (last.next == last.children) way.pop_back();
    enter(n);
  }
  return found;
}

// The sample trees of the original distribution, by name ("T1"), with what is to be found in them.
struct sample {
  std::string_view name;
  parameters tree;
  tally found{};
};
const sample* find_sample(std::string_view name);   // null: no such name
const sample* find_sample(const parameters& tree);  // null: nobody published this tree
std::string sample_names();                         // "T1, T2, ..."

}  // namespace uts
