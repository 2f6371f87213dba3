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
    std::uintptr_t v = 0;
    if (!memory.word(at, v)) return std::nullopt;
    r.set(number, v);
    at += sizeof v;
  }
  r.set(frame_registers::sp, sp + frame_registers::saved_bytes);
  return r;
}

}  // namespace

std::vector<std::uintptr_t> backtrace(const loaded_modules& modules, std::uintptr_t sp,
                                      const stack_copy& memory, std::size_t depth_max) {
  std::vector<std::uintptr_t> found;
  auto registers = saved_at(sp, memory);
  bool after_call = true;
  while (registers && found.size() < depth_max) {
    const std::uintptr_t address =
        without_signature(registers->get(frame_registers::return_address).value_or(0));
    if (address == 0) break;
    const loaded_module* const m = modules.code_at(address - 1);
    if (m == nullptr) break;
    found.push_back(address);
    // The call is before the return address, perhaps the last instruction of its function.
    const std::uintptr_t pc = after_call ? address - 1 : address;
    const auto d = find_frame_description(m->image, m->index, pc);
    if (!d || !step_to_caller(*d, pc, memory, *registers)) break;
    after_call = !d->signal;
  }
  return found;
}

}  // namespace strata::detail
