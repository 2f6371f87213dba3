// SPDX-License-Identifier: Apache-2.0
// What our signal finds of the machine where it ends a call of the kernel.
#include "pthread/preload/interrupted_call.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace strata::preload {
namespace {

// A call, and what follows. Then where the processor has the number of the call, and its answer.
#if defined(__x86_64__)
constexpr std::size_t call_bytes = 2;
constexpr std::array<unsigned char, 4> code{0x0f, 0x05, 0x90, 0x90};

auto& next_of(ucontext_t& c) { return c.uc_mcontext.gregs[REG_RIP]; }
auto& number_of(ucontext_t& c) { return c.uc_mcontext.gregs[REG_RAX]; }
auto& answer_of(ucontext_t& c) { return c.uc_mcontext.gregs[REG_RAX]; }
#elif defined(__aarch64__)
constexpr std::size_t call_bytes = 4;
constexpr std::array<std::uint32_t, 2> code{0xd4000001, 0xd503201f};

auto& next_of(ucontext_t& c) { return c.uc_mcontext.pc; }
auto& number_of(ucontext_t& c) { return c.uc_mcontext.regs[8]; }
auto& answer_of(ucontext_t& c) { return c.uc_mcontext.regs[0]; }
#endif
using word = std::uint64_t;

// What the kernel has laid on the stack for a handler.
struct frame {
#if defined(__aarch64__)
  siginfo_t info{};
#endif
  ucontext_t before{};
};
void ends_with(ucontext_t& c, const frame& f) {
#if defined(__x86_64__)
  c.uc_mcontext.gregs[REG_RSP] = reinterpret_cast<greg_t>(&f);
#elif defined(__aarch64__)
  c.uc_mcontext.sp = reinterpret_cast<word>(&f);
#endif
}

word place_in_code(std::size_t at) { return reinterpret_cast<word>(code.data()) + at; }

ucontext_t interrupted(std::size_t at, int call) {
  ucontext_t c{};
  next_of(c) = static_cast<std::remove_reference_t<decltype(next_of(c))>>(place_in_code(at));
  number_of(c) = call;
  return c;
}
void expect_ended(ucontext_t& c) {
  EXPECT_EQ(static_cast<word>(next_of(c)), place_in_code(call_bytes));
  EXPECT_EQ(static_cast<std::int64_t>(answer_of(c)), -EINTR);
}
void expect_as_it_was(ucontext_t& c, std::size_t at, int call) {
  EXPECT_EQ(static_cast<word>(next_of(c)), place_in_code(at));
  EXPECT_EQ(static_cast<int>(number_of(c)), call);
}

TEST(interrupted_call, is_ended_where_it_would_begin_again) {
  ucontext_t c = interrupted(0, SYS_read);
  end_call(c);
  expect_ended(c);
}

TEST(interrupted_call, is_none_behind_it) {
  ucontext_t c = interrupted(call_bytes, 7);
  end_call(c);
  expect_as_it_was(c, call_bytes, 7);
}

// The last instruction of another handler, with what that has interrupted where it looks for it.
TEST(interrupted_call, is_not_that_by_which_a_handler_ends) {
  frame reads{.before = interrupted(0, SYS_read)};
  frame computes{.before = interrupted(call_bytes, 7)};
  for (const frame* const before : {&reads, &computes}) {
    ucontext_t ends = interrupted(0, SYS_rt_sigreturn);
    ends_with(ends, *before);
    end_call(ends);
    expect_as_it_was(ends, 0, SYS_rt_sigreturn);
  }
  expect_ended(reads.before);
  expect_as_it_was(computes.before, call_bytes, 7);
}

}  // namespace
}  // namespace strata::preload
