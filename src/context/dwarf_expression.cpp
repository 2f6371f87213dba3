// SPDX-License-Identifier: Apache-2.0
#include "context/dwarf_expression.hpp"

#include <array>
#include <cstddef>

namespace strata::detail {
namespace {

// DWARF 5, table 7.9. One operation for each of 32 literals and of 32 registers.
enum class expression_op : std::uint8_t {
  deref = 0x06,
  const1u = 0x08,
  const1s = 0x09,
  const2u = 0x0a,
  const2s = 0x0b,
  constu = 0x10,
  consts = 0x11,
  bit_and = 0x1a,
  minus = 0x1c,
  bit_or = 0x21,
  plus = 0x22,
  plus_uconst = 0x23,
  shl = 0x24,
  shr = 0x25,
  ge = 0x2a,
  lit0 = 0x30,
  lit31 = 0x4f,
  breg0 = 0x70,
  breg31 = 0x8f,
};

// What was found missing is remembered; until somebody asks, it is zero.
class expression_stack {
 public:
  void push(std::optional<std::uintptr_t> v) noexcept {
    if (!v || size_ == values_.size()) {
      good_ = false;
    } else {
      values_[size_++] = *v;
    }
  }
  std::uintptr_t pop() noexcept {
    if (size_ == 0) good_ = false;
    return size_ == 0 ? 0 : values_[--size_];
  }
  [[nodiscard]] bool good() const noexcept { return good_; }

 private:
  std::array<std::uintptr_t, 16> values_{};
  std::size_t size_ = 0;
  bool good_ = true;
};

std::optional<std::uintptr_t> combine(expression_op op, std::uintptr_t a,
                                      std::uintptr_t b) noexcept {
  using enum expression_op;
  switch (op) {
    case bit_and:
      return a & b;
    case minus:
      return a - b;
    case bit_or:
      return a | b;
    case plus:
      return a + b;
    case shl:
      return b < 64 ? a << b : 0;
    case shr:
      return b < 64 ? a >> b : 0;
    case ge:
      return static_cast<std::intptr_t>(a) >= static_cast<std::intptr_t>(b) ? 1 : 0;
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<std::uintptr_t> evaluate(dwarf_reader code, const frame_registers& registers,
                                       const stack_copy& memory,
                                       std::optional<std::uintptr_t> first) noexcept {
  using enum expression_op;
  const auto as_signed = [](std::int64_t v) { return static_cast<std::uintptr_t>(v); };
  const auto plus_offset = [](std::optional<std::uintptr_t> v, std::uint64_t offset) {
    return v ? std::optional(*v + offset) : v;
  };
  expression_stack s;
  if (first) s.push(first);
  while (code.more() && s.good()) {
    const auto number = code.fixed<std::uint8_t>();
    const auto op = static_cast<expression_op>(number);
    if (op >= lit0 && op <= lit31) {
      s.push(number - static_cast<unsigned>(lit0));
      continue;
    }
    if (op >= breg0 && op <= breg31) {
      s.push(plus_offset(registers.get(number - static_cast<unsigned>(breg0)),
                         as_signed(code.sleb())));
      continue;
    }
    switch (op) {
      case const1u:
        s.push(code.fixed<std::uint8_t>());
        break;
      case const1s:
        s.push(as_signed(code.fixed<std::int8_t>()));
        break;
      case const2u:
        s.push(code.fixed<std::uint16_t>());
        break;
      case const2s:
        s.push(as_signed(code.fixed<std::int16_t>()));
        break;
      case constu:
        s.push(code.uleb());
        break;
      case consts:
        s.push(as_signed(code.sleb()));
        break;
      case deref:
        s.push(memory.word(s.pop()));
        break;
      case plus_uconst:
        s.push(s.pop() + code.uleb());
        break;
      default: {
        const std::uintptr_t b = s.pop();
        const std::uintptr_t a = s.pop();
        s.push(combine(op, a, b));
      }
    }
  }
  const std::uintptr_t result = s.pop();
  return code.good() && s.good() ? std::optional(result) : std::nullopt;
}

}  // namespace strata::detail
