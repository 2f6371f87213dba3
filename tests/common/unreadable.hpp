// SPDX-License-Identifier: Apache-2.0
// An object that can be made into bytes, of which no object is made.
#pragma once
#include <cereal/types/string.hpp>
#include <new>
#include <stdexcept>
#include <string>

namespace strata::test {

struct unreadable {
  std::string text;
  template <class Archive>
  void save(Archive& a) const {
    a(text);
  }
  template <class Archive>
  void load(Archive& a) {
    a(text);
    if (text == "no memory") throw std::bad_alloc();
    throw std::range_error("a text that nobody reads");
  }
};

}  // namespace strata::test
