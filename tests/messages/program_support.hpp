// SPDX-License-Identifier: Apache-2.0
// What the parts of the program of whole jobs share.
#pragma once
#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "../common/known_bytes.hpp"
#include "strata/message.hpp"
#include "strata/runtime.hpp"

namespace strata::test {

inline node_id_t last_node() { return static_cast<node_id_t>(num_nodes() - 1); }

inline std::vector<std::byte> pattern_of(std::size_t bytes, unsigned seed) {
  return known_bytes<9UL << 20>(seed * 7U, bytes);
}

struct hello {
  endpoint_id who;
  std::uint32_t number;
};

// An object for others to find by its name.
struct counter {
  explicit counter(long first) : value(first) {}
  long add(long more) { return value += more; }
  std::atomic<long> value;
};

inline void die() { std::raise(SIGKILL); }

}  // namespace strata::test
