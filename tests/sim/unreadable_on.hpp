// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cereal/types/string.hpp>
#include <stdexcept>
#include <string>

#include "strata/runtime.hpp"
#include "strata/serialize.hpp"

namespace strata::test {

// An argument of which there is none on one node.
struct unreadable_on {
  node_id_t node = 0;
  std::string more{};  // makes bytes of it
  template <class Archive>
  void save(Archive& a) const {
    a(node, more);
  }
  template <class Archive>
  void load(Archive& a) {
    a(node, more);
    if (strata::node_id() == node) throw std::range_error("an argument that nobody reads here");
  }
};

}  // namespace strata::test
