// SPDX-License-Identifier: Apache-2.0
// What messages call a thread.
#pragma once
#include <string>

#include "base/spelling.hpp"
#include "context/stack.hpp"

namespace strata::detail {

// Of one that does not end meanwhile: thread 7 "collector". Takes no lock.
inline std::string name_of(const stack& s) {
  return "thread " + std::to_string(s.number) + " \"" +
         (s.title != nullptr ? std::string(s.title) : std::string(plain_name(s.kind->name()))) +
         "\"";
}

}  // namespace strata::detail
