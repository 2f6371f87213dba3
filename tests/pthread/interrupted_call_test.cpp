// SPDX-License-Identifier: Apache-2.0
// What our signal finds of the machine where it ends a call of the kernel.
#include "pthread/preload/interrupted_call.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cstddef>

#if defined(__x86_64__)
namespace strata::preload {
namespace {

constexpr std::array<unsigned char, 4> code{0x0f, 0x05, 0x90, 0x90};  // a call, and what follows

greg_t place_in_code(std::size_t at) { return reinterpret_cast<greg_t>(code.data() + at); }

ucontext_t interrupted(std::size_t at, long call) {
  ucontext_t c{};
  c.uc_mcontext.gregs[REG_RIP] = place_in_code(at);
  c.uc_mcontext.gregs[REG_RAX] = call;
  return c;
}
void expect_ended(const ucontext_t& c) {
  EXPECT_EQ(c.uc_mcontext.gregs[REG_RIP], place_in_code(2));
  EXPECT_EQ(c.uc_mcontext.gregs[REG_RAX], -EINTR);
}
void expect_as_it_was(const ucontext_t& c, std::size_t at, long call) {
  EXPECT_EQ(c.uc_mcontext.gregs[REG_RIP], place_in_code(at));
  EXPECT_EQ(c.uc_mcontext.gregs[REG_RAX], call);
}

TEST(interrupted_call, is_ended_where_it_would_begin_again) {
  ucontext_t c = interrupted(0, SYS_read);
  end_call(c);
  expect_ended(c);
}

TEST(interrupted_call, is_none_behind_it) {
  ucontext_t c = interrupted(2, 7);
  end_call(c);
  expect_as_it_was(c, 2, 7);
}

// The last instruction of another handler, with what that has interrupted where it looks for it.
TEST(interrupted_call, is_not_that_by_which_a_handler_ends) {
  ucontext_t reads = interrupted(0, SYS_read), computes = interrupted(2, 7);
  for (ucontext_t* const before : {&reads, &computes}) {
    ucontext_t ends = interrupted(0, SYS_rt_sigreturn);
    ends.uc_mcontext.gregs[REG_RSP] = reinterpret_cast<greg_t>(before);
    end_call(ends);
    expect_as_it_was(ends, 0, SYS_rt_sigreturn);
  }
  expect_ended(reads);
  expect_as_it_was(computes, 2, 7);
}

}  // namespace
}  // namespace strata::preload
#endif
