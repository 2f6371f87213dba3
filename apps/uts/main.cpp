// SPDX-License-Identifier: Apache-2.0
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "apps/common/program.hpp"
#include "apps/uts/fibers.hpp"
#include "apps/uts/fork_join.hpp"
#include "apps/uts/tree.hpp"
#include "src/base/shortened.hpp"

namespace {

constexpr int depth_limit = 1'000'000;
constexpr int children_limit = 1'000'000;

// What was given on the command line; the rest comes from the named tree or from the defaults.
struct flags {
  std::string name;
  std::optional<int> type, shape, depth, seed, inner_children;
  std::optional<double> root_children, inner_probability;
};

uts::parameters tree_of(const flags& given) {
  uts::parameters tree;
  if (!given.name.empty()) {
    const uts::sample* sample = uts::find_sample(given.name);
    if (sample == nullptr) {
      throw strata::user_error(strata::in_quotes(given.name) +
                               " is not a sample tree; choose one of " + uts::sample_names() +
                               ", or describe a tree with -t -a -d -b -r -q -m");
    }
    tree = sample->tree;
  }
  if (given.type) tree.type = static_cast<uts::tree_type>(*given.type);
  if (given.shape) tree.shape = static_cast<uts::tree_shape>(*given.shape);
  tree.depth = given.depth.value_or(tree.depth);
  tree.seed = given.seed.value_or(tree.seed);
  tree.inner_children = given.inner_children.value_or(tree.inner_children);
  tree.root_children = given.root_children.value_or(tree.root_children);
  tree.inner_probability = given.inner_probability.value_or(tree.inner_probability);

  const bool binomial =
      tree.type == uts::tree_type::binomial || tree.type == uts::tree_type::hybrid;
  if (binomial && tree.inner_probability * tree.inner_children >= 1) {
    throw strata::user_error(
        "-q times -m is 1 or more: such a tree is expected never to end; make -q or -m smaller");
  }
  const bool geometric =
      tree.type == uts::tree_type::geometric || tree.type == uts::tree_type::hybrid;
  if (geometric && tree.shape == uts::tree_shape::exponential &&
      (tree.root_children < 1 || tree.depth < 2)) {
    throw strata::user_error(
        "-a 1 needs -b of at least 1 and -d of at least 2; otherwise it does not shrink");
  }
  return tree;
}

void add_flags(apps::command_line& cli, flags& given) {
  using apps::whole_number;
  cli.add("TREE,--tree", given.name, "a sample tree: " + uts::sample_names());
  cli.add("-t", given.type, "0 binomial, 1 geometric, 2 hybrid, 3 balanced [1]")
      .check(whole_number(0, 3, "tree types are 0 to 3"));
  cli.add("-a", given.shape, "geometric: 0 linear, 1 exponential decrease, 2 cyclic, 3 fixed [0]")
      .check(whole_number(0, 3, "shapes are 0 to 3"));
  cli.add("-d", given.depth, "depth parameter [6]")
      .check(whole_number(1, depth_limit, "the depth is limited"));
  cli.add("-b", given.root_children, "children of the root, on average [4]")
      .check(apps::real_number(0, children_limit, "the root's children are limited"));
  cli.add("-r", given.seed, "seed of the root [0]")
      .check(whole_number(0, 0x7fffffff, "seeds have 31 bits"));
  cli.add("-q", given.inner_probability,
          "binomial: probability that a node has children [0.234375]")
      .check(apps::real_number(0, 1, "it is a probability"));
  cli.add("-m", given.inner_children, "binomial: how many children it then has [4]")
      .check(whole_number(0, children_limit, "a node's children are limited"));
}

int body(apps::program& p) {
  flags given;
  add_flags(p.cli(), given);
  p.prefer_on_several_nodes(apps::style::fibers);
  p.offer_styles({apps::style::fork_join, apps::style::fibers, apps::style::serial});
  p.parse();
  const uts::parameters tree = tree_of(given);

  const uts::tally found = p.timed([&] {
    switch (p.how()) {
      case apps::style::fork_join:
        return uts::fork_join(tree);
      case apps::style::fibers:
        return uts::fibers(tree);
      case apps::style::serial:
        break;
    }
    return uts::serial(tree);
  });

  const uts::sample* known = uts::find_sample(tree);
  std::printf("%s: %" PRIu64 " nodes, %" PRIu64 " leaves, depth %" PRIu64
              "  (%.3f s, %.1f ns per node)%s\n",
              known != nullptr ? std::string(known->name).c_str() : "tree", found.nodes,
              found.leaves, found.depth_max, p.seconds(),
              p.seconds() * 1e9 / static_cast<double>(found.nodes),
              known != nullptr ? "" : "; no published count to compare with");
  nlohmann::json parameters = {{"t", static_cast<int>(tree.type)},
                               {"a", static_cast<int>(tree.shape)},
                               {"d", tree.depth},
                               {"b", tree.root_children},
                               {"r", tree.seed},
                               {"q", tree.inner_probability},
                               {"m", tree.inner_children}};
  if (known != nullptr) parameters["tree"] = std::string(known->name);
  return p.finish(parameters,
                  {{"tree_nodes", found.nodes},
                   {"leaves", found.leaves},
                   {"depth", found.depth_max},
                   {"known", known != nullptr}},
                  known == nullptr || found == known->found);
}

}  // namespace

int main(int argc, char** argv) {
  return apps::run_program(
      "uts", "Counts the nodes of an unbalanced tree, one task per node (UTS, LCPC 2006).", argc,
      argv, body);
}
