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

// Call frame instructions, which change `now` to the rules at one place. `initial`: what registers
// are restored to.
class frame_program {
 public:
  frame_program(dwarf_reader code, const frame_description& d, const frame_rules& initial,
                frame_rules& now) noexcept
      : code_(code), d_(d), initial_(initial), now_(now) {}

  // Until it comes to what holds only above `pc`. False when there is something that it does not
  // know.
  bool run(std::uintptr_t pc) noexcept {
    std::uintptr_t at = d_.begin;
    while (code_.more()) {
      const auto byte = code_.fixed<std::uint8_t>();
      low_ = byte & 0x3fU;
      const auto op = static_cast<frame_op>((byte & 0xc0U) != 0 ? byte & 0xc0U : low_);
      if (const auto step = location_step(op))
        at += *step * d_.code_align;
      else if (!apply_register_rule(op) && !apply_cfa_rule(op) && !apply_other(op))
        return false;
      if (at > pc) break;
    }
    return code_.good();
  }

 private:
  // By how many units it goes on in the function. Nothing: this is an instruction of another kind,
  // of which the next three say false.
  std::optional<std::uint64_t> location_step(frame_op op) noexcept {
    using enum frame_op;
    switch (op) {
      case advance_loc:
        return low_;
      case advance_loc1:
        return code_.fixed<std::uint8_t>();
      case advance_loc2:
        return code_.fixed<std::uint16_t>();
      case advance_loc4:
        return code_.fixed<std::uint32_t>();
      default:
        return std::nullopt;
    }
  }

  bool apply_register_rule(frame_op op) noexcept {
    using enum frame_op;
    std::uint64_t number = 0;
    switch (op) {
      case offset:
        set(low_, {frame_rule::at_offset, factored()});
        return true;
      case offset_extended:
        number = code_.uleb();
        set(number, {frame_rule::at_offset, factored()});
        return true;
      case offset_extended_sf:
        number = code_.uleb();
        set(number, {frame_rule::at_offset, factored_signed()});
        return true;
      case val_offset:
        number = code_.uleb();
        set(number, {frame_rule::is_offset, factored()});
        return true;
      case val_offset_sf:
        number = code_.uleb();
        set(number, {frame_rule::is_offset, factored_signed()});
        return true;
      case in_register:
        number = code_.uleb();
        set(number, {frame_rule::in_register, as_signed(code_.uleb())});
        return true;
      case expression:
        number = code_.uleb();
        set(number, {frame_rule::at_expression, 0, block()});
        return true;
      case val_expression:
        number = code_.uleb();
        set(number, {frame_rule::is_expression, 0, block()});
        return true;
      case undefined:
        set(code_.uleb(), {frame_rule::undefined});
        return true;
      case same_value:
        set(code_.uleb(), {frame_rule::same});
        return true;
      case restore:
        restore_one(low_);
        return true;
      case restore_extended:
        restore_one(code_.uleb());
        return true;
      default:
        return false;
    }
  }

  bool apply_cfa_rule(frame_op op) noexcept {
    using enum frame_op;
    switch (op) {
      case def_cfa:
        now_.cfa_register = code_.uleb();
        now_.cfa_offset = as_signed(code_.uleb());
        now_.cfa_code.reset();
        return true;
      case def_cfa_sf:
        now_.cfa_register = code_.uleb();
        now_.cfa_offset = factored_signed();
        now_.cfa_code.reset();
        return true;
      case def_cfa_register:
        now_.cfa_register = code_.uleb();
        now_.cfa_code.reset();
        return true;
      case def_cfa_offset:
        now_.cfa_offset = as_signed(code_.uleb());
        return true;
      case def_cfa_offset_sf:
        now_.cfa_offset = factored_signed();
        return true;
      case def_cfa_expression:
        now_.cfa_code = block();
        return true;
      default:
        return false;
    }
  }

  bool apply_other(frame_op op) noexcept {
    using enum frame_op;
    switch (op) {
      case remember_state:
        if (kept_count_ == kept_.size()) return false;
        kept_[kept_count_++] = now_;
        return true;
      case restore_state:
        if (kept_count_ == 0) return false;
        now_ = kept_[--kept_count_];
        return true;
      case gnu_args_size:
        (void)code_.uleb();
        return true;
      case nop:
      case aarch64_negate_ra_state:  // the signature is cut off
        return true;
      default:
        return false;
    }
  }

  void set(std::uint64_t number, const frame_rule& rule) noexcept {
    if (number < frame_registers::count) now_.of[number] = rule;
  }
  void restore_one(std::uint64_t number) noexcept {
    if (number < frame_registers::count) now_.of[number] = initial_.of[number];
  }
  static std::int64_t as_signed(std::uint64_t v) noexcept { return static_cast<std::int64_t>(v); }
  std::int64_t factored() noexcept { return as_signed(code_.uleb()) * d_.data_align; }
  std::int64_t factored_signed() noexcept { return code_.sleb() * d_.data_align; }
  dwarf_reader block() noexcept { return code_.part(code_.uleb()); }

  dwarf_reader code_;
  const frame_description& d_;
  const frame_rules& initial_;
  frame_rules& now_;
  unsigned low_ = 0;  // six bits of the instruction: a small operand
  std::array<frame_rules, 4> kept_;
  std::size_t kept_count_ = 0;
};

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
  if (!frame_program(d.common, d, initial, initial).run(~std::uintptr_t{0})) return false;
  frame_rules now = initial;
  if (!frame_program(d.own, d, initial, now).run(pc)) return false;
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
