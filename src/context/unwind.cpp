// SPDX-License-Identifier: Apache-2.0
#include "context/unwind.hpp"

#include <optional>

#include "context/call_frame.hpp"
#include "context/frame_description.hpp"

namespace strata::detail {
namespace {

std::uintptr_t without_signature(std::uintptr_t return_address) noexcept {
#if defined(__aarch64__)
  return return_address & 0x0000'ffff'ffff'ffffU;
#else
  return return_address;
#endif
}

// Those of who called strata_switch_context().
std::optional<frame_registers> saved_at(std::uintptr_t sp, const stack_copy& memory) noexcept {
  frame_registers r;
  std::uintptr_t at = sp;
  for (const unsigned number : frame_registers::saved) {
    const auto word = memory.word(at);
    if (!word) return std::nullopt;
    r.set(number, word);
    at += sizeof *word;
  }
  r.set(frame_registers::sp, sp + frame_registers::saved_bytes);
  return r;
}

std::uintptr_t return_address_in(const frame_registers& r) noexcept {
  return without_signature(r.get(frame_registers::return_address).value_or(0));
}

// From the frame that is at `address`, with `registers`, outwards. `after_call`: it has called
// somebody, and will go on there.
std::vector<std::uintptr_t> walk(const loaded_modules& modules, std::uintptr_t address,
                                 bool after_call, frame_registers registers,
                                 const stack_copy& memory, std::size_t depth_max) {
  std::vector<std::uintptr_t> found;
  while (address != 0 && found.size() < depth_max) {
    // The call is before the return address, perhaps the last instruction of its function.
    const std::uintptr_t pc = after_call ? address - 1 : address;
    const loaded_module* const m = modules.code_at(pc);
    if (m == nullptr) break;
    found.push_back(pc + 1);
    const auto d = find_frame_description(m->image, m->index, pc);
    if (!d || !step_to_caller(*d, pc, memory, registers)) break;
    address = return_address_in(registers);
    after_call = !d->signal;
  }
  return found;
}

}  // namespace

std::vector<std::uintptr_t> backtrace(const loaded_modules& modules, std::uintptr_t sp,
                                      const stack_copy& memory, std::size_t depth_max) {
  const auto registers = saved_at(sp, memory);
  if (!registers) return {};
  return walk(modules, return_address_in(*registers), true, *registers, memory, depth_max);
}

std::vector<std::uintptr_t> backtrace(const loaded_modules& modules, std::uintptr_t pc,
                                      const frame_registers& registers, const stack_copy& memory,
                                      std::size_t depth_max) {
  return walk(modules, pc, false, registers, memory, depth_max);
}

}  // namespace strata::detail
