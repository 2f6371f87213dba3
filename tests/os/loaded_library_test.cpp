// SPDX-License-Identifier: Apache-2.0
#include "os/loaded_library.hpp"

#include <gtest/gtest.h>

#include <string>

#include "strata/error.hpp"

namespace {

using strata::os::loaded_library;

template <class F>
std::string refusal(const F& f) {
  try {
    f();
  } catch (const strata::error& e) {
    return e.what();
  }
  return "none";
}

const loaded_library::description mathematics{
    .title = "mathematics", .file = "libm.so.6", .remedy = "install a C library"};

TEST(loaded_library, finds_functions) {
  const loaded_library library(mathematics);
  double (*cosine)(double) = nullptr;
  library.find("cos", cosine);
  EXPECT_EQ(cosine(0), 1);
  void (*memory)(void*) = nullptr;
  library.find("free", memory);  // of the C library, which it depends on
  EXPECT_NE(memory, nullptr);
}

TEST(loaded_library, a_missing_one_is_named_with_what_to_do) {
  const std::string why = refusal([] {
    const loaded_library none({.title = "nothing",
                               .file = "libstrata_nothing.so.7",
                               .remedy = "install it (Debian: libnothing7)"});
  });
  EXPECT_TRUE(why.starts_with("cannot load nothing: libstrata_nothing.so.7: ")) << why;
  EXPECT_TRUE(why.ends_with("; install it (Debian: libnothing7)")) << why;
}

TEST(loaded_library, a_missing_function_is_named) {
  const loaded_library library(mathematics);
  void (*function)() = nullptr;
  EXPECT_EQ(refusal([&] { library.find("strata_has_no_such_function", function); }),
            "libm.so.6 has no strata_has_no_such_function");
  EXPECT_EQ(function, nullptr);
}

}  // namespace
