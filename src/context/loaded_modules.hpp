// SPDX-License-Identifier: Apache-2.0
// The program and its shared libraries: which one an address lies in, and what the address is
// called. They stay loaded, and their memory may be read, as long as the object exists that found
// them; what was loaded later is not seen. One thread at a time.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace strata::detail {

struct loaded_module {
  std::string path;
  std::uintptr_t base = 0;           // what the addresses in its file are relative to
  std::span<const std::byte> image;  // all of it
  std::span<const std::byte> index;  // .eh_frame_hdr; empty: there is none that can be read
  std::vector<std::pair<std::uintptr_t, std::uintptr_t>> code;
  void* handle = nullptr;  // keeps it loaded
  [[nodiscard]] bool holds(std::uintptr_t address) const noexcept {
    return address - reinterpret_cast<std::uintptr_t>(image.data()) < image.size();
  }
};

class loaded_modules {
 public:
  // Throws std::bad_alloc.
  loaded_modules();
  ~loaded_modules();
  loaded_modules(const loaded_modules&) = delete;
  loaded_modules& operator=(const loaded_modules&) = delete;

  // The one whose code `address` lies in; null: it is no code that we know.
  [[nodiscard]] const loaded_module* code_at(std::uintptr_t address) const noexcept;
  // "function +0x1f (module+0x1234)" for a return address, as far as that is known. Valid as long
  // as this.
  [[nodiscard]] const std::string& describe(std::uintptr_t return_address);

 private:
  [[nodiscard]] const loaded_module* at(std::uintptr_t address) const noexcept;

  std::vector<loaded_module> modules_;
  std::unordered_map<std::uintptr_t, std::string> names_;
};

}  // namespace strata::detail
