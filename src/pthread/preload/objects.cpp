// SPDX-License-Identifier: Apache-2.0
#include "pthread/preload/objects.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <array>

namespace strata::preload {

bool is_the_systems(std::string_view path) noexcept {
  constexpr std::array<std::string_view, 6> names{
      "libc.so", "ld-linux", "libstdc++.so", "libgcc_s.so", "libhwloc.so", "libstrata_pthread"};
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return std::any_of(names.begin(), names.end(), [&](auto n) { return name.starts_with(n); });
}

address_range all_of(const dl_phdr_info& object) noexcept {
  address_range all;
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = object.dlpi_phdr[i];
    if (part.p_type == PT_LOAD) all.add(object.dlpi_addr + part.p_vaddr, part.p_memsz);
  }
  return all;
}

// An executable that is not position independent, and takes a function's address, has the jump to
// it that all compare by, and does not define it.
const void* object_with(const char* symbol) noexcept {
  for (void* const scope : {RTLD_DEFAULT, RTLD_NEXT}) {
    void* const found = dlsym(scope, symbol);
    Dl_info about{};
    const ElfW(Sym)* entry = nullptr;
    if (found == nullptr ||
        dladdr1(found, &about, reinterpret_cast<void**>(const_cast<ElfW(Sym)**>(&entry)),
                RTLD_DL_SYMENT) == 0)
      return nullptr;
    if (entry == nullptr || entry->st_shndx != SHN_UNDEF) return about.dli_fbase;
  }
  return nullptr;
}

}  // namespace strata::preload
