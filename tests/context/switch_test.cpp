// SPDX-License-Identifier: Apache-2.0
// A context goes on exactly as it stopped.
#include "context/switch.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "context/stack.hpp"
#include "context/stack_pool.hpp"
#include "strata/detail/cpu.hpp"

#if defined(STRATA_ASAN)
#include <sanitizer/common_interface_defs.h>
#endif

namespace strata::detail {
namespace {

void* on_some_stack(void*) {
  // The address of something on the calling stack, whatever the compiler makes of locals.
  return reinterpret_cast<void*>(stack_pointer());
}

// One pooled stack that runs `body` each time it is entered.
class coroutine {
 public:
  explicit coroutine(void (*body)(coroutine&)) : body_(body), pool_(64 * 1024, &main) {
    native_ = context_of_this_thread();
    current = this;
    stack_ = pool_.take();
  }
  void enter() { switch_context(native_, *stack_); }
  void leave() { switch_context(*stack_, native_); }
  [[nodiscard]] const stack& its_stack() const { return *stack_; }

 private:
  static void main(void*) {
#if defined(STRATA_ASAN)
    __sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr);
#endif
    coroutine& self = *current;
    for (;;) {
      self.body_(self);
      self.leave();
    }
  }
  static inline coroutine* current = nullptr;
  void (*body_)(coroutine&);
  stack_pool pool_;
  context native_;
  stack* stack_ = nullptr;
};

int entered = 0;
void* where = nullptr;

TEST(context_switch, goes_there_and_back) {
  entered = 0;
  coroutine c([](coroutine&) {
    ++entered;
    where = on_some_stack(nullptr);
  });
  for (int i = 1; i <= 1000; ++i) {
    c.enter();
    ASSERT_EQ(entered, i);
  }
  const auto* low = static_cast<const std::byte*>(c.its_stack().bottom);
  EXPECT_GE(where, low);
  EXPECT_LT(where, low + c.its_stack().bytes);
}

TEST(context_switch, keeps_what_was_on_the_stack) {
  coroutine c([](coroutine& self) {
    std::array<int, 1000> content;
    for (int round = 0; round < 100; ++round) {
      content.fill(round);
      self.leave();
      for (const int value : content) ASSERT_EQ(value, round);
    }
  });
  for (int round = 0; round < 100; ++round) c.enter();
}

TEST(context_switch, begins_with_an_aligned_stack) {
  coroutine c([](coroutine&) {
    // Fails with an alignment fault, or in the sanitizer, when the stack is off by 8.
    alignas(16) volatile float vector[4] = {1, 2, 3, 4};
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&vector) % 16, 0u);
  });
  c.enter();
}

TEST(context_switch, keeps_exceptions_working_on_both_sides) {
  coroutine c([](coroutine& self) {
    try {
      throw 1;
    } catch (int) {
    }
    self.leave();
  });
  for (int i = 0; i < 10; ++i) {
    c.enter();
    EXPECT_THROW(throw 2.0, double);
  }
}

// Many doubles that are alive across a switch, in registers as far as the compiler likes.
double series(double x, void (*pause)()) {
  std::array<double, 12> term{};
  for (std::size_t i = 0; i < term.size(); ++i) term[i] = x / static_cast<double>(i + 1);
  double sum = 0;
  for (int round = 0; round < 50; ++round) {
    for (std::size_t i = 0; i < term.size(); ++i) {
      term[i] = term[i] * 1.0000001 + static_cast<double>(round);
    }
    pause();
    for (const double t : term) sum += t;
  }
  return sum;
}

coroutine* other = nullptr;

TEST(context_switch, keeps_floating_point_values) {
  const double expected = series(3.7, [] {});
  coroutine c([](coroutine&) {
    for (;;) {
      const double here = series(-1.1, [] { other->leave(); });
      ASSERT_EQ(here, series(-1.1, [] {}));
    }
  });
  other = &c;
  for (int i = 0; i < 20; ++i) EXPECT_EQ(series(3.7, [] { other->enter(); }), expected);
}

#if defined(__x86_64__) && !defined(STRATA_TSAN) && !defined(STRATA_ASAN)

extern "C" void switch_by_jump(void** from, void* to) noexcept;
using switch_function = void (*)(void** from, void* to) noexcept;

// Fills every register that a call must keep, switches, and says which of them came back changed,
// one bit for each.
[[gnu::noinline]] unsigned registers_lost(switch_function how, void** from, void* to,
                                          std::uint64_t pattern) {
  std::uint64_t lost;
  asm volatile(
      "leaq -256(%%rsp), %%rsp\n\t"  // the compiler may keep something below the stack pointer
      "pushq %%rbp\n\t"
      "movq %%rsp, %%r14\n\t"
      "andq $-16, %%rsp\n\t"
      "pushq %%r14\n\t"
      "pushq %%rdx\n\t"
      "leaq 1(%%rdx), %%rbx\n\t"
      "leaq 2(%%rdx), %%rbp\n\t"
      "leaq 3(%%rdx), %%r12\n\t"
      "leaq 4(%%rdx), %%r13\n\t"
      "leaq 5(%%rdx), %%r14\n\t"
      "leaq 6(%%rdx), %%r15\n\t"
      "call *%%rcx\n\t"
      "popq %%rdx\n\t"
      "popq %%rcx\n\t"
      "xorl %%eax, %%eax\n\t"
      "xorl %%esi, %%esi\n\t"
      "subq %%rdx, %%rbx\n\t"
      "cmpq $1, %%rbx\n\t"
      "setne %%sil\n\t"
      "orq %%rsi, %%rax\n\t"
      "subq %%rdx, %%rbp\n\t"
      "cmpq $2, %%rbp\n\t"
      "setne %%sil\n\t"
      "leaq (%%rsi,%%rax,2), %%rax\n\t"
      "subq %%rdx, %%r12\n\t"
      "cmpq $3, %%r12\n\t"
      "setne %%sil\n\t"
      "leaq (%%rsi,%%rax,2), %%rax\n\t"
      "subq %%rdx, %%r13\n\t"
      "cmpq $4, %%r13\n\t"
      "setne %%sil\n\t"
      "leaq (%%rsi,%%rax,2), %%rax\n\t"
      "subq %%rdx, %%r14\n\t"
      "cmpq $5, %%r14\n\t"
      "setne %%sil\n\t"
      "leaq (%%rsi,%%rax,2), %%rax\n\t"
      "subq %%rdx, %%r15\n\t"
      "cmpq $6, %%r15\n\t"
      "setne %%sil\n\t"
      "leaq (%%rsi,%%rax,2), %%rax\n\t"
      "movq %%rcx, %%rsp\n\t"
      "popq %%rbp\n\t"
      "leaq 256(%%rsp), %%rsp\n\t"
      : "=a"(lost), "+D"(from), "+S"(to), "+d"(pattern), "+c"(how)
      :
      : "rbx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "memory", "cc", "xmm0", "xmm1",
        "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7");
  return static_cast<unsigned>(lost);
}

void* main_context = nullptr;
void* side_context = nullptr;
unsigned side_lost = 0;

switch_function side_switches = nullptr;

// By a call and by a jump, in each direction: who stopped by one may be continued by the other.
TEST(context_switch, keeps_every_callee_saved_register) {
  alignas(16) static std::array<std::byte, 64 * 1024> memory;
  for (const switch_function there : {&strata_switch_context, &switch_by_jump}) {
    for (const switch_function back : {&strata_switch_context, &switch_by_jump}) {
      side_lost = 0;
      side_switches = back;
      side_context = make_context(
          memory.data() + memory.size(),
          [](void*) {
            for (std::uint64_t round = 0;; ++round) {
              side_lost |= registers_lost(side_switches, &side_context, main_context,
                                          0x5555'0000'0000'0000U + round);
            }
          },
          nullptr);
      for (std::uint64_t round = 0; round < 100; ++round) {
        ASSERT_EQ(
            registers_lost(there, &main_context, side_context, 0xaaaa'0000'0000'0000U + 7 * round),
            0u);
      }
      EXPECT_EQ(side_lost, 0u);
    }
  }
}

#endif

TEST(stack_pool, gives_each_stack_to_one_owner_and_then_again) {
  stack_pool pool(32 * 1024, [](void*) {});
  std::vector<stack*> all;
  for (int i = 0; i < 50; ++i) {
    stack* s = pool.take();
    EXPECT_GE(s->bytes, 31u * 1024);
    EXPECT_GT(s->limit, reinterpret_cast<std::uintptr_t>(s->bottom));
    EXPECT_LT(s->limit, reinterpret_cast<std::uintptr_t>(s->bottom) + s->bytes);
    for (const stack* t : all) {
      const auto* low = static_cast<const std::byte*>(s->bottom);
      const auto* other_low = static_cast<const std::byte*>(t->bottom);
      EXPECT_TRUE(low + s->bytes <= other_low || other_low + t->bytes <= low);
    }
    all.push_back(s);
  }
  EXPECT_EQ(pool.taken_max(), 50u);
  stack* const last = all.back();
  pool.give(last);
  EXPECT_EQ(pool.take(), last);
  for (stack* s : all) pool.give(s);
  for (int i = 0; i < 50; ++i) pool.take();
  EXPECT_EQ(pool.taken_max(), 50u);
}

// Whoever leaves a stack may hold a lock until it has left, and others wait for that.
TEST(stack_pool, makes_none_ready_for_who_is_waited_for) {
  stack_pool pool(32 * 1024, [](void*) {});
  EXPECT_EQ(pool.take_ready(), nullptr);
  stack* const first = pool.take();
  EXPECT_EQ(pool.take_ready(), nullptr);
  pool.give(first);
  EXPECT_EQ(pool.take_ready(), first);
  // With their number more are made ready at a time.
  for (int i = 0; i < 100; ++i) pool.take();
  while (pool.take_ready() != nullptr) {
  }
  EXPECT_EQ(pool.taken_max(), pool.cut());
}

// Nor of those of a pool that ends, though the next one may lie at its addresses.
TEST(stack_pool, counts_lives_from_elsewhere_than_another) {
  const auto first_life = [] {
    stack_pool pool(32 * 1024, [](void*) {});
    return pool.take()->lives;
  };
  EXPECT_NE(first_life(), first_life());
}

// Who runs there is none of those that did, whatever became of the memory.
TEST(stack_pool, counts_lives_beyond_its_memory) {
  stack_pool pool(32 * 1024, [](void*) {});
  stack* const s = pool.take();
  s->lives = 5;
  pool.give(s);
  pool.forget_after(1);
  for (int period = 1; period <= 2; ++period) (void)pool.tidy(period * std::int64_t{1} << 40);
  EXPECT_TRUE(pool.is_tidy());
  ASSERT_EQ(pool.take(), s);
  EXPECT_GE(s->lives, 5u);
}

// What the kernel says of the mapping that the address is in, in /proc/self/smaps.
std::string flags_of_mapping(const void* address) {
  const auto wanted = reinterpret_cast<std::uintptr_t>(address);
  std::ifstream smaps("/proc/self/smaps");
  bool is_here = false;
  for (std::string line; std::getline(smaps, line);) {
    std::istringstream words(line);
    std::uintptr_t begin = 0, end = 0;
    char dash = 0;
    if (words >> std::hex >> begin >> dash >> end && dash == '-')
      is_here = begin <= wanted && wanted < end;
    else if (is_here && line.rfind("VmFlags:", 0) == 0)
      return line + " ";
  }
  return {};
}

// Else each of many threads with stacks of 8 MiB has a page of 2 MiB, where the system gives those
// to all that do not say no.
TEST(stack_pool, has_no_large_pages) {
  if (!std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled"))
    GTEST_SKIP() << "there are none";
  stack_pool pool(std::size_t{8} << 20, [](void*) {});
  const stack* const s = pool.take();
  EXPECT_NE(flags_of_mapping(s).find(" nh "), std::string::npos) << flags_of_mapping(s);
}

TEST(stack_pool, knows_its_guards) {
  stack_pool pool(32 * 1024, [](void*) {});
  stack* const first = pool.take();
  stack* const second = pool.take();
  for (const stack* s : {first, second}) {
    const auto* low = static_cast<const std::byte*>(s->bottom);
    EXPECT_EQ(pool.guarding(low - 1), s);
    EXPECT_EQ(pool.guarding(low - 4096), s);
    EXPECT_EQ(pool.guarding(low), nullptr);
    EXPECT_EQ(pool.guarding(low + s->bytes - 1), nullptr);
  }
  int local = 0;
  EXPECT_EQ(pool.guarding(&local), nullptr);
  EXPECT_EQ(pool.guarding(nullptr), nullptr);
  // Not cut yet.
  const auto* beyond = static_cast<const std::byte*>(second->bottom) + (64 << 10);
  EXPECT_EQ(pool.guarding(beyond), nullptr);
}

}  // namespace
}  // namespace strata::detail
