// SPDX-License-Identifier: Apache-2.0
#include "context/call_frame.hpp"

#include <array>
#include <cstddef>
#include <optional>

#include "context/dwarf_expression.hpp"

namespace strata::detail {
namespace {

// DWARF 5, table 7.29, and two of vendors. The first three have an operand in their low six bits.
enum class frame_op : std::uint8_t {
  advance_loc = 0x40,
  offset = 0x80,
  restore = 0xc0,
  nop = 0x00,
  advance_loc1 = 0x02,
  advance_loc2 = 0x03,
  advance_loc4 = 0x04,
  offset_extended = 0x05,
  restore_extended = 0x06,
  undefined = 0x07,
  same_value = 0x08,
  in_register = 0x09,
  remember_state = 0x0a,
  restore_state = 0x0b,
  def_cfa = 0x0c,
  def_cfa_register = 0x0d,
  def_cfa_offset = 0x0e,
  def_cfa_expression = 0x0f,
  expression = 0x10,
  offset_extended_sf = 0x11,
  def_cfa_sf = 0x12,
  def_cfa_offset_sf = 0x13,
  val_offset = 0x14,
  val_offset_sf = 0x15,
  val_expression = 0x16,
  aarch64_negate_ra_state = 0x2d,  // the return address is signed from here on
  gnu_args_size = 0x2e,
};

// How the caller's value of a register is found. CFA: the "canonical frame address", the caller's
// stack pointer before the call.
struct frame_rule {
  enum kind : std::uint8_t {
    same,
    undefined,
    at_offset,      // in memory, at the CFA plus offset
    is_offset,      // the CFA plus offset
    in_register,    // in the register of this number
    at_expression,  // in memory, where the expression says
    is_expression,  // what the expression says
  };
  kind how = same;
  std::int64_t offset = 0;  // or the number
  dwarf_reader code{};
};

// The rules at one place of a function.
struct frame_rules {
  std::uint64_t cfa_register = frame_registers::sp;
  std::int64_t cfa_offset = 0;
  std::optional<dwarf_reader> cfa_code;  // instead of both
  std::array<frame_rule, frame_registers::count> of{};
};

// Changes `now` as `code` says, until it comes to what holds only above `pc`. `initial`: what
// registers are restored to. False when there is something that it does not know.
bool run(dwarf_reader code, const frame_description& d, std::uintptr_t pc,
         const frame_rules& initial, frame_rules& now) noexcept {
  using enum frame_op;
  std::uintptr_t at = d.begin;
  std::array<frame_rules, 4> kept;
  std::size_t kept_count = 0;
  const auto set = [&](std::uint64_t number, const frame_rule& rule) {
    if (number < frame_registers::count) now.of[number] = rule;
  };
  const auto set_back = [&](std::uint64_t number) {
    if (number < frame_registers::count) now.of[number] = initial.of[number];
  };
  const auto as_signed = [](std::uint64_t v) { return static_cast<std::int64_t>(v); };
  const auto factored = [&] { return as_signed(code.uleb()) * d.data_align; };
  const auto factored_signed = [&] { return code.sleb() * d.data_align; };
  const auto block = [&] { return code.part(code.uleb()); };

  while (code.more()) {
    const auto byte = code.fixed<std::uint8_t>();
    const unsigned low = byte & 0x3fU;
    const auto op = static_cast<frame_op>((byte & 0xc0U) != 0 ? byte & 0xc0U : low);
    std::uint64_t step = 0;
    std::uint64_t number = 0;
    switch (op) {
      case advance_loc:
        step = low;
        break;
      case advance_loc1:
        step = code.fixed<std::uint8_t>();
        break;
      case advance_loc2:
        step = code.fixed<std::uint16_t>();
        break;
      case advance_loc4:
        step = code.fixed<std::uint32_t>();
        break;

      case offset:
        set(low, {frame_rule::at_offset, factored()});
        break;
      case offset_extended:
        number = code.uleb();
        set(number, {frame_rule::at_offset, factored()});
        break;
      case offset_extended_sf:
        number = code.uleb();
        set(number, {frame_rule::at_offset, factored_signed()});
        break;
      case val_offset:
        number = code.uleb();
        set(number, {frame_rule::is_offset, factored()});
        break;
      case val_offset_sf:
        number = code.uleb();
        set(number, {frame_rule::is_offset, factored_signed()});
        break;
      case in_register:
        number = code.uleb();
        set(number, {frame_rule::in_register, as_signed(code.uleb())});
        break;
      case expression:
        number = code.uleb();
        set(number, {frame_rule::at_expression, 0, block()});
        break;
      case val_expression:
        number = code.uleb();
        set(number, {frame_rule::is_expression, 0, block()});
        break;
      case undefined:
        set(code.uleb(), {frame_rule::undefined});
        break;
      case same_value:
        set(code.uleb(), {frame_rule::same});
        break;
      case restore:
        set_back(low);
        break;
      case restore_extended:
        set_back(code.uleb());
        break;

      case def_cfa:
        now.cfa_register = code.uleb();
        now.cfa_offset = as_signed(code.uleb());
        now.cfa_code.reset();
        break;
      case def_cfa_sf:
        now.cfa_register = code.uleb();
        now.cfa_offset = factored_signed();
        now.cfa_code.reset();
        break;
      case def_cfa_register:
        now.cfa_register = code.uleb();
        now.cfa_code.reset();
        break;
      case def_cfa_offset:
        now.cfa_offset = as_signed(code.uleb());
        break;
      case def_cfa_offset_sf:
        now.cfa_offset = factored_signed();
        break;
      case def_cfa_expression:
        now.cfa_code = block();
        break;

      case remember_state:
        if (kept_count == kept.size()) return false;
        kept[kept_count++] = now;
        break;
      case restore_state:
        if (kept_count == 0) return false;
        now = kept[--kept_count];
        break;
      case gnu_args_size:
        (void)code.uleb();
        break;
      case nop:
      case aarch64_negate_ra_state:  // the signature is cut off
        break;
      default:
        return false;
    }
    at += step * d.code_align;
    if (at > pc) break;
  }
  return code.good();
}

std::optional<std::uintptr_t> cfa_of(const frame_rules& rules, const frame_registers& registers,
                                     const stack_copy& memory) noexcept {
  if (rules.cfa_code) return evaluate(*rules.cfa_code, registers, memory, std::nullopt);
  const auto base = registers.get(rules.cfa_register);
  return base ? std::optional(*base + static_cast<std::uintptr_t>(rules.cfa_offset)) : base;
}

}  // namespace

bool step_to_caller(const frame_description& d, std::uintptr_t pc, const stack_copy& memory,
                    frame_registers& registers) noexcept {
  frame_rules initial;
  if (!run(d.common, d, ~std::uintptr_t{0}, initial, initial)) return false;
  frame_rules now = initial;
  if (!run(d.own, d, pc, initial, now)) return false;
  const auto cfa = cfa_of(now, registers, memory);
  if (!cfa) return false;

  frame_registers caller;
  for (unsigned i = 0; i < frame_registers::count; ++i) {
    const frame_rule& rule = now.of[i];
    const std::uintptr_t at = *cfa + static_cast<std::uintptr_t>(rule.offset);
    switch (rule.how) {
      case frame_rule::same:
        // Nobody saves the stack pointer: it is what it was before the call.
        caller.set(i, i == frame_registers::sp ? cfa : registers.get(i));
        break;
      case frame_rule::undefined:
        break;
      case frame_rule::at_offset:
        caller.set(i, memory.word(at));
        break;
      case frame_rule::is_offset:
        caller.set(i, at);
        break;
      case frame_rule::in_register:
        caller.set(i, registers.get(static_cast<std::uint64_t>(rule.offset)));
        break;
      case frame_rule::at_expression: {
        const auto address = evaluate(rule.code, registers, memory, cfa);
        if (address) caller.set(i, memory.word(*address));
        break;
      }
      case frame_rule::is_expression:
        caller.set(i, evaluate(rule.code, registers, memory, cfa));
        break;
    }
  }
  const auto back = caller.get(d.return_column);
  const auto sp = caller.get(frame_registers::sp);
  // Stacks grow downwards: a caller that is not above its callee is none.
  if (!back || !sp || *sp < registers.get(frame_registers::sp).value_or(0)) return false;
  caller.set(frame_registers::return_address, back);
  registers = caller;
  return true;
}

}  // namespace strata::detail
