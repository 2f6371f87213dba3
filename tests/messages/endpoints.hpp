// SPDX-License-Identifier: Apache-2.0
// Endpoints within one process, with different numbers of workers.
#pragma once
#include <gtest/gtest.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "../sched/support.hpp"
#include "strata/message.hpp"

namespace strata::test {

inline std::span<const std::byte> text(std::string_view s) { return std::as_bytes(std::span(s)); }
inline std::string as_text(const message& m) {
  return {reinterpret_cast<const char*>(m.content.data()), m.content.size()};
}

// The parameter is how many there are.
class endpoints : public testing::TestWithParam<unsigned> {
 protected:
  template <class F>
  static void run(F&& f) {
    runtime rt(with_workers(GetParam()));
    rt.run(f);
  }
};

}  // namespace strata::test
