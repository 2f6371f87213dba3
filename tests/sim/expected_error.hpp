// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>

#include "program_job.hpp"

namespace strata::test {

// f() throws an Error, for which `fits`, by then.
template <class Error>
void expect_error(
    const program_job& p, const char* what, std::int64_t within_ns, const std::function<void()>& f,
    const std::function<bool(const Error&)>& fits = [](const Error&) { return true; }) {
  const std::int64_t begun_ns = p.now_ns();
  try {
    f();
    ADD_FAILURE() << what << ": nobody has said that it has ended";
  } catch (const Error& e) {
    EXPECT_TRUE(fits(e)) << what << ": " << e.what();
    EXPECT_EQ(std::string(e.what()).find('\n'), std::string::npos) << e.what();
  } catch (const std::exception& e) {
    ADD_FAILURE() << what << ": another error: " << e.what();
  }
  EXPECT_LE(p.now_ns() - begun_ns, within_ns) << what;
}

}  // namespace strata::test
