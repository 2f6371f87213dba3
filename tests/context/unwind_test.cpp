// SPDX-License-Identifier: Apache-2.0
// The tables of a module say what they say in the standard's examples, and whatever they say, no
// byte outside of them is read (the address sanitizer looks on) and no search goes on for ever.
#include "context/unwind.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <vector>

#include "context/call_frame.hpp"
#include "context/dwarf_expression.hpp"

namespace strata::detail {
namespace {

using bytes = std::vector<std::byte>;

void add(bytes& to, std::initializer_list<unsigned> values) {
  for (const unsigned v : values) to.push_back(static_cast<std::byte>(v));
}

template <class T>
void add_number(bytes& to, T value) {
  const auto* const from = reinterpret_cast<const std::byte*>(&value);
  to.insert(to.end(), from, from + sizeof value);
}

bytes of(std::initializer_list<unsigned> values) {
  bytes b;
  add(b, values);
  return b;
}

TEST(dwarf_reader, reads_the_examples_of_the_standard) {
  const bytes positive = of({2, 0x7f, 0x80, 1, 0x81, 1, 0x82, 1, 0xb9, 0x64});
  dwarf_reader u(positive);
  for (const std::uint64_t expected : {2, 127, 128, 129, 130, 12857}) EXPECT_EQ(u.uleb(), expected);
  EXPECT_FALSE(u.more());
  EXPECT_TRUE(u.good());
  const bytes both = of({2, 0x7e, 0xff, 0, 0x81, 0x7f, 0x80, 1, 0x80, 0x7f, 0x81, 1, 0xff, 0x7e});
  dwarf_reader s(both);
  for (const std::int64_t expected : {2, -2, 127, -127, 128, -128, 129, -129})
    EXPECT_EQ(s.sleb(), expected);
  EXPECT_TRUE(s.good());
}

TEST(dwarf_reader, reads_numbers_of_64_bits_and_loses_what_is_above) {
  const bytes largest = of({0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 7});
  dwarf_reader u(largest);
  EXPECT_EQ(u.uleb(), ~std::uint64_t{0});
  EXPECT_EQ(u.uleb(), 7u);
  const bytes lowest = of({0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f});
  EXPECT_EQ(dwarf_reader(lowest).sleb(), INT64_MIN);
  const bytes endless(20, std::byte{0xff});
  dwarf_reader e(endless);
  EXPECT_EQ(e.uleb(), ~std::uint64_t{0});
  EXPECT_EQ(e.at(), endless.data() + 10);
}

TEST(dwarf_reader, is_zero_from_its_end_on) {
  const bytes four = of({1, 2, 3, 4});
  dwarf_reader r(four);
  EXPECT_EQ(r.fixed<std::uint8_t>(), 1);
  EXPECT_EQ(r.fixed<std::uint32_t>(), 0u);
  EXPECT_FALSE(r.good());
  EXPECT_EQ(r.fixed<std::uint8_t>(), 0) << "not even what would fit";
  dwarf_reader p(four);
  EXPECT_FALSE(p.part(5).good());
  EXPECT_FALSE(p.good());
  dwarf_reader q(four);
  EXPECT_EQ(q.part(2).fixed<std::uint16_t>(), 0x0201);
  EXPECT_EQ(q.fixed<std::uint16_t>(), 0x0403);
  EXPECT_TRUE(q.good());
}

TEST(dwarf_reader, adds_a_pointers_own_address) {
  const bytes b = of({0xfe, 0xff, 0xff, 0xff, 0, 0, 0, 0});
  const auto here = reinterpret_cast<std::uintptr_t>(b.data());
  EXPECT_EQ(dwarf_reader(b).pointer(0x1b), here - 2);
  EXPECT_EQ(dwarf_reader(b).pointer(0x9b), here - 2);
  EXPECT_EQ(dwarf_reader(b).pointer(0x03), 0xffff'fffeU);
  dwarf_reader unknown(b);
  (void)unknown.pointer(0x3b);
  EXPECT_FALSE(unknown.good());
}

TEST(dwarf_expression, computes) {
  const std::uintptr_t word = 1234;
  const stack_copy memory{4096, std::as_bytes(std::span(&word, 1))};
  frame_registers registers;
  registers.set(6, 4100);
  const auto value = [&](std::initializer_list<unsigned> code) {
    return evaluate(dwarf_reader(of(code)), registers, memory, 50);
  };
  EXPECT_EQ(value({}), 50u);
  EXPECT_EQ(value({0x35, 0x22}), 55u);                      // lit5 plus
  EXPECT_EQ(value({0x76, 0x7c, 0x06}), 1234u);              // breg6 -4 deref
  EXPECT_EQ(value({0x23, 0x80, 0x01}), 178u);               // plus_uconst 128
  EXPECT_EQ(value({0x09, 0xfe, 0x1c}), 52u);                // const1s -2 minus
  EXPECT_EQ(value({0x08, 0xf0, 0x1a}), 48u);                // const1u 240 and
  EXPECT_EQ(value({0x33, 0x24}), 400u);                     // lit3 shl
  EXPECT_EQ(value({0x08, 200, 0x24}), 0u);                  // const1u 200 shl
  EXPECT_EQ(value({0x76, 0, 0x3f, 0x1a, 0x3b, 0x2a}), 0u);  // breg6 0 lit15 and lit11 ge
  EXPECT_EQ(value({0x22}), std::nullopt) << "only one operand";
  EXPECT_EQ(value({0x75, 0}), std::nullopt) << "an unknown register";
  EXPECT_EQ(value({0x06}), std::nullopt) << "memory that was not copied";
  EXPECT_EQ(value({0x23}), std::nullopt) << "cut off";
  EXPECT_EQ(value({0x96}), std::nullopt) << "an unknown operation";
  EXPECT_EQ(evaluate({}, registers, memory, std::nullopt), std::nullopt) << "no result";
  const bytes many(16, std::byte{0x30});
  EXPECT_EQ(evaluate(dwarf_reader(many), registers, memory, std::nullopt), 0u);
  EXPECT_EQ(evaluate(dwarf_reader(many), registers, memory, 1), std::nullopt) << "too many";
}

// A module with one function, of 16 bytes, 4096 above its index: it begins with its frame's 16
// bytes, has 32 from the 4th, 16 from the 8th and 32 again from the 12th. Register 3 is saved.
constexpr std::uintptr_t code_at = 4096;

bytes module_at(std::uintptr_t base) {
  bytes b;
  constexpr std::uint32_t index_bytes = 20;
  add(b, {1, 0x1b, 0x03, 0x3b});
  add_number<std::uint32_t>(b, index_bytes - 4);  // to the entries, from here
  add_number<std::uint32_t>(b, 1);
  add_number<std::uint32_t>(b, code_at);
  const std::size_t entry_number = b.size();
  add_number<std::uint32_t>(b, 0);

  bytes common;
  add_number<std::uint32_t>(common, 0);
  add(common, {1, 'z', 'R', 0, 1, 0x78, frame_registers::return_address, 1, 0});
  add(common, {0x0c, frame_registers::sp, 16, 0x80 | frame_registers::return_address, 1});
  add_number(b, static_cast<std::uint32_t>(common.size()));
  b.insert(b.end(), common.begin(), common.end());

  const auto entry = static_cast<std::uint32_t>(b.size());
  std::memcpy(b.data() + entry_number, &entry, sizeof entry);
  bytes own;
  add_number<std::uint32_t>(own, entry + 4 - index_bytes);
  add_number<std::uint64_t>(own, base + code_at);
  add_number<std::uint64_t>(own, 16);
  add(own, {0, 0x80 | 3, 2, 0x44, 0x0a, 0x0e, 32, 0x44, 0x0b, 0x44, 0x0e, 32});
  add_number(b, static_cast<std::uint32_t>(own.size()));
  b.insert(b.end(), own.begin(), own.end());
  return b;
}

struct caller {
  std::uintptr_t sp, back, third;
  bool operator==(const caller&) const = default;
};

// The caller of the function's frame at `offset`, on a stack of numbers that begins at 8000.
std::optional<caller> caller_at(std::span<const std::byte> module, std::uintptr_t offset) {
  const std::uintptr_t stack[] = {10, 11, 12, 13};
  const stack_copy memory{8000, std::as_bytes(std::span(stack))};
  frame_registers r;
  r.set(frame_registers::sp, 8000);
  const std::uintptr_t pc = reinterpret_cast<std::uintptr_t>(module.data()) + code_at + offset;
  const auto d =
      find_frame_description(module, module.first(std::min<std::size_t>(module.size(), 20)), pc);
  if (!d || !step_to_caller(*d, pc, memory, r)) return std::nullopt;
  return caller{r.get(frame_registers::sp).value_or(0),
                r.get(frame_registers::return_address).value_or(0), r.get(3).value_or(0)};
}

TEST(call_frame, is_what_the_rows_of_its_function_say) {
  bytes module(module_at(0).size());
  const bytes b = module_at(reinterpret_cast<std::uintptr_t>(module.data()));
  std::copy(b.begin(), b.end(), module.begin());
  const caller small{8016, 11, 10};
  const caller large{8032, 13, 12};
  EXPECT_EQ(caller_at(module, 0), small);
  EXPECT_EQ(caller_at(module, 3), small);
  EXPECT_EQ(caller_at(module, 4), large);
  EXPECT_EQ(caller_at(module, 8), small);
  EXPECT_EQ(caller_at(module, 11), small);
  EXPECT_EQ(caller_at(module, 15), large);
  EXPECT_EQ(caller_at(module, 16), std::nullopt) << "behind the function";
  EXPECT_EQ(caller_at(module, ~std::uintptr_t{0}), std::nullopt) << "before it";
}

TEST(call_frame, is_unknown_where_its_tables_are_cut_off) {
  const std::size_t whole = module_at(0).size();
  for (std::size_t n = 0; n < whole; ++n) {
    bytes module(n);
    const bytes b = module_at(reinterpret_cast<std::uintptr_t>(module.data()));
    std::copy_n(b.begin(), n, module.begin());
    EXPECT_EQ(caller_at(module, 15), std::nullopt) << n;
  }
}

TEST(call_frame, survives_any_change_of_a_byte) {
  bytes module(module_at(0).size());
  const bytes good = module_at(reinterpret_cast<std::uintptr_t>(module.data()));
  for (std::size_t i = 0; i < module.size(); ++i) {
    for (unsigned v = 0; v < 256; ++v) {
      std::copy(good.begin(), good.end(), module.begin());
      module[i] = static_cast<std::byte>(v);
      (void)caller_at(module, 15);
    }
  }
  std::copy(good.begin(), good.end(), module.begin());
  EXPECT_TRUE(caller_at(module, 15));
}

// Those of the compiler and the linker, as far as they are there to be read.
[[gnu::noinline]] void some_function() { asm volatile(""); }

TEST(loaded_modules, know_this_function) {
  loaded_modules modules;
  const auto address = reinterpret_cast<std::uintptr_t>(&some_function);
  const loaded_module* const m = modules.code_at(address);
  ASSERT_NE(m, nullptr);
  EXPECT_NE(m->path.find("test_context"), std::string::npos);
  const auto d = find_frame_description(m->image, m->index, address);
  ASSERT_TRUE(d);
  EXPECT_EQ(d->begin, address);
  EXPECT_NE(modules.describe(address + 1).find("(test_context+0x"), std::string::npos);
  const int local = 0;
  EXPECT_EQ(modules.code_at(reinterpret_cast<std::uintptr_t>(&local)), nullptr);
}

}  // namespace
}  // namespace strata::detail
