// SPDX-License-Identifier: Apache-2.0
// What suspended stacks wait for, for whoever wants to know why nothing moves.
#pragma once
#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace strata::detail {

// What a stack's `waits_for` says where it is not another task that it waits for.
inline constexpr char wait_for_descriptor[] = "file descriptor";
inline constexpr char wait_for_call[] = "blocking call";

struct waiting_stacks {
  static constexpr std::size_t names_max = 5;
  struct group {
    std::size_t stacks = 0;
    std::vector<std::string> names;  // of some
  };

  std::map<std::string, group> by_what;  // "mutex"
  std::size_t for_others = 0;
  std::size_t for_the_world = 0;

  // A line for each group.
  [[nodiscard]] std::string text() const;
};

}  // namespace strata::detail
