// SPDX-License-Identifier: Apache-2.0
#include "pthread/preload/program_code.hpp"

#include <link.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "pthread/preload/allocators.hpp"
#include "pthread/preload/objects.hpp"

namespace strata::preload {
namespace {

// Of many libraries few are larger than the executable. Release when all are there; acquire by
// handlers on workers that have begun before. Null: nothing is the program's. Never freed: others
// run on while main() has ended.
using code_ranges = std::vector<address_range>;
constinit std::atomic<const code_ranges*> known{nullptr};

struct allocators {
  const void* of_c;
  const void* of_cxx;
  code_ranges* others;
  bool has_seen_executable = false;
  bool are_the_executables = false;
};

// Waits in the kernel by instructions of its own, not by the C library: a thread that were left
// with such a lock would leave it to a worker that waits for it and never comes back to the thread.
// And the kernel's own, which the C library calls wherever it likes.
bool is_left_out(std::string_view path) noexcept {
  constexpr std::array<std::string_view, 2> names{"libgomp", "linux-vdso"};
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return is_the_systems(path) ||
         std::any_of(names.begin(), names.end(), [&](auto n) { return name.starts_with(n); });
}

int look_at_code(dl_phdr_info* object, std::size_t, void* argument) {
  auto& a = *static_cast<allocators*>(argument);
  const bool is_executable = !a.has_seen_executable;
  a.has_seen_executable = true;
  const address_range all = all_of(*object);
  const bool allocates = all.holds(a.of_c) || all.holds(a.of_cxx);
  if (is_executable) a.are_the_executables = allocates;
  if (!is_executable && all.holds(a.of_c) && !is_left_out(object->dlpi_name)) note_allocator(all);
  if (allocates || (!is_executable && is_left_out(object->dlpi_name))) return 0;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = object->dlpi_phdr[i];
    if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0) continue;
    address_range code;
    code.add(object->dlpi_addr + part.p_vaddr, part.p_memsz);
    a.others->push_back(code);
  }
  return 0;
}

}  // namespace

void find_program_code() {
  // By its symbol, as others find it that is the program's: operator new(std::size_t).
  auto all = std::make_unique<code_ranges>();
  allocators a{object_with("malloc"), object_with("_Znwm"), all.get()};
  dl_iterate_phdr(&look_at_code, &a);
  if (!a.are_the_executables) known.store(all.release(), std::memory_order_release);
}

bool is_program_code(std::uintptr_t at) noexcept {
  const code_ranges* const all = known.load(std::memory_order_acquire);
  return all != nullptr && std::any_of(all->begin(), all->end(), [=](const address_range& r) {
           return r.begin <= at && at < r.end;
         });
}

}  // namespace strata::preload
