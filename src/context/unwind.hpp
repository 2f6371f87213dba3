// SPDX-License-Identifier: Apache-2.0
// Backtraces of stacks that are suspended, from a copy of their memory: an interpreter of the call
// frame information in .eh_frame (DWARF 5, section 6.4; Linux Standard Base 5, section 10.6) that
// reads nothing but the copy, the registers saved with it, and the tables of loaded modules. The
// unwinder of the C++ library follows pointers in live memory; on a stack that somebody continues
// meanwhile it can crash. This one can be wrong then, never more.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace strata::detail {

// Part of a stack as it was: the bytes from address `begin` up.
struct stack_copy {
  std::uintptr_t begin = 0;
  std::span<const std::byte> bytes;
  // The word at `address`; false when it was not copied.
  [[nodiscard]] bool word(std::uintptr_t address, std::uintptr_t& value) const noexcept;
};

// The modules of this process, kept loaded as long as this exists.
class loaded_modules {
 public:
  loaded_modules();
  ~loaded_modules();
  loaded_modules(const loaded_modules&) = delete;
  loaded_modules& operator=(const loaded_modules&) = delete;

  // Return addresses, innermost first, of what strata_switch_context() saved at `sp`.
  [[nodiscard]] std::vector<std::uintptr_t> backtrace(std::uintptr_t sp, const stack_copy& stack,
                                                      std::size_t depth_max) const;
  // "function +0x1f (module+0x1234)" for a return address.
  [[nodiscard]] const std::string& describe(std::uintptr_t return_address);
  // Whether `address` lies in code of ours.
  [[nodiscard]] bool is_code(std::uintptr_t address) const noexcept;

 private:
  struct module {
    std::string path;
    std::uintptr_t base = 0;
    std::uintptr_t begin = 0, end = 0;  // all of it
    std::vector<std::pair<std::uintptr_t, std::uintptr_t>> code;
    const std::uint8_t* index = nullptr;  // .eh_frame_hdr
    std::size_t index_bytes = 0;
    void* handle = nullptr;
  };
  [[nodiscard]] const module* module_of(std::uintptr_t address) const noexcept;

  std::vector<module> modules_;
  std::unordered_map<std::uintptr_t, std::string> names_;
};

}  // namespace strata::detail
