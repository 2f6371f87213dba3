// SPDX-License-Identifier: Apache-2.0
// An object that counts how often it is made into bytes, and out of them.
#pragma once
#include <cereal/types/string.hpp>
#include <string>

namespace strata::test {

struct counted_object {
  static inline unsigned written = 0, read = 0;
  std::string text;
  template <class Archive>
  void save(Archive& a) const {
    ++written;
    a(text);
  }
  template <class Archive>
  void load(Archive& a) {
    ++read;
    a(text);
  }
};

}  // namespace strata::test
