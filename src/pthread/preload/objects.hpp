// SPDX-License-Identifier: Apache-2.0
// What is loaded with the program, and whose it is.
#pragma once
#include <link.h>

#include <cstdint>
#include <string_view>

namespace strata::preload {

// Theirs is the OS thread's business: the runtime uses them in between, and for its own threads.
[[nodiscard]] bool is_the_systems(std::string_view path) noexcept;

struct address_range {
  std::uintptr_t begin = UINTPTR_MAX;
  std::uintptr_t end = 0;
  [[nodiscard]] bool holds(const void* address) const noexcept {
    const auto a = reinterpret_cast<std::uintptr_t>(address);
    return begin <= a && a < end;
  }
  void add(std::uintptr_t at, std::size_t bytes) noexcept {
    if (at < begin) begin = at;
    if (at + bytes > end) end = at + bytes;
  }
};

// Of all that is loaded of an object.
[[nodiscard]] address_range all_of(const dl_phdr_info& object) noexcept;

// Where the object begins that has it for everybody; null: none.
[[nodiscard]] const void* object_with(const char* symbol) noexcept;

}  // namespace strata::preload
