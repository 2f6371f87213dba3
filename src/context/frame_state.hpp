// SPDX-License-Identifier: Apache-2.0
// What is known of one frame of a suspended stack: some registers, and a copy of the stack's
// memory. Numbers of registers are DWARF's for this machine (x86-64 psABI, figure 3.36; DWARF for
// the Arm 64-bit Architecture, section 4.1).
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

namespace strata::detail {

// Part of a stack as it was: the bytes from address `begin` up.
struct stack_copy {
  std::uintptr_t begin = 0;
  std::span<const std::byte> bytes;
  // The word at `address`; none when it was not copied.
  [[nodiscard]] std::optional<std::uintptr_t> word(std::uintptr_t address) const noexcept {
    std::uintptr_t value = 0;
    if (address < begin || address - begin > bytes.size() ||
        bytes.size() - (address - begin) < sizeof value)
      return std::nullopt;
    std::memcpy(&value, bytes.data() + (address - begin), sizeof value);
    return value;
  }
};

// Those a frame can need. Who asks for one that is not known gets nothing.
class frame_registers {
 public:
#if defined(__x86_64__)
  static constexpr unsigned count = 17, sp = 7, return_address = 16;
  // What strata_switch_context() pushes, from its lowest address: r15 r14 r13 r12 rbx rbp, and the
  // return address.
  static constexpr std::array<unsigned, 7> saved{15, 14, 13, 12, 3, 6, 16};
  static constexpr std::size_t saved_bytes = 56;
#elif defined(__aarch64__)
  static constexpr unsigned count = 33, sp = 31, return_address = 30;
  // The same: x19 to x30, then what concerns nobody here.
  static constexpr std::array<unsigned, 12> saved{19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30};
  static constexpr std::size_t saved_bytes = 160;
#endif

  [[nodiscard]] std::optional<std::uintptr_t> get(std::uint64_t number) const noexcept {
    return number < count ? value_[number] : std::nullopt;
  }
  // `number` < count.
  void set(std::uint64_t number, std::optional<std::uintptr_t> value) noexcept {
    value_[number] = value;
  }

 private:
  std::array<std::optional<std::uintptr_t>, count> value_;
};

}  // namespace strata::detail
