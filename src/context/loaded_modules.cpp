// SPDX-License-Identifier: Apache-2.0
#include "context/loaded_modules.hpp"

#include <cxxabi.h>
#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string_view>

namespace strata::detail {
namespace {

std::span<const std::byte> memory_between(std::uintptr_t begin, std::uintptr_t end) noexcept {
  return {reinterpret_cast<const std::byte*>(begin), begin < end ? end - begin : 0};
}

loaded_module module_of(const dl_phdr_info& info) {
  loaded_module m;
  m.base = info.dlpi_addr;
  m.path = info.dlpi_name != nullptr ? info.dlpi_name : "";
  std::uintptr_t first = ~std::uintptr_t{0};
  std::uintptr_t last = 0;
  for (const auto& part : std::span(info.dlpi_phdr, info.dlpi_phnum)) {
    const std::uintptr_t begin = m.base + part.p_vaddr;
    const std::uintptr_t end = begin + part.p_memsz;
    if (part.p_type == PT_LOAD) {
      first = std::min(first, begin);
      last = std::max(last, end);
      if ((part.p_flags & PF_X) != 0) m.code.emplace_back(begin, end);
    } else if (part.p_type == PT_GNU_EH_FRAME) {
      m.index = memory_between(begin, end);
    }
  }
  m.image = memory_between(first, last);
  return m;
}

std::string plain_symbol(const char* name) {
  // A function of C named f is not the type "float".
  if (!std::string_view(name).starts_with("_Z")) return name;
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> plain(
      abi::__cxa_demangle(name, nullptr, nullptr, &status), &std::free);
  return plain != nullptr && status == 0 ? plain.get() : name;
}

std::string plus(std::uintptr_t offset) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "+0x%zx", static_cast<std::size_t>(offset));
  return text.data();
}

}  // namespace

loaded_modules::loaded_modules() {
  struct found {
    std::vector<loaded_module>& all;
    std::exception_ptr failure;  // to unwind the C library's frames takes memory
  } modules{modules_, {}};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* argument) {
        auto& f = *static_cast<found*>(argument);
        try {
          f.all.push_back(module_of(*info));
          return 0;
        } catch (...) {
          f.failure = std::current_exception();
          return 1;
        }
      },
      &modules);
  if (modules.failure != nullptr) std::rethrow_exception(modules.failure);
  for (loaded_module& m : modules_) {
    if (m.path.empty()) {
      std::array<char, 4096> exe{};
      const auto n = ::readlink("/proc/self/exe", exe.data(), exe.size() - 1);
      m.path = n > 0 ? exe.data() : "program";
    } else {
      // Nobody unloads it while we read its tables.
      m.handle = dlopen(m.path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
      if (m.handle == nullptr && m.path.find('/') != std::string::npos) m.index = {};
    }
  }
}

loaded_modules::~loaded_modules() {
  for (const loaded_module& m : modules_) {
    if (m.handle != nullptr) dlclose(m.handle);
  }
}

const loaded_module* loaded_modules::at(std::uintptr_t address) const noexcept {
  for (const loaded_module& m : modules_) {
    if (m.holds(address)) return &m;
  }
  return nullptr;
}

const loaded_module* loaded_modules::code_at(std::uintptr_t address) const noexcept {
  const loaded_module* const m = at(address);
  if (m == nullptr) return nullptr;
  for (const auto& [begin, end] : m->code) {
    if (address >= begin && address < end) return m;
  }
  return nullptr;
}

const std::string& loaded_modules::describe(std::uintptr_t return_address) {
  const auto [known, is_new] = names_.try_emplace(return_address);
  std::string& text = known->second;
  if (!is_new) return text;
  const std::uintptr_t call = return_address - 1;  // perhaps the function's last instruction
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(call), &info) != 0 && info.dli_sname != nullptr) {
    const auto begin = reinterpret_cast<std::uintptr_t>(info.dli_saddr);
    text = plain_symbol(info.dli_sname) + ' ' + plus(return_address - begin) + ' ';
  }
  if (const loaded_module* const m = at(call)) {
    text += '(';
    text.append(m->path, m->path.rfind('/') + 1);
    text += plus(return_address - m->base) + ')';
  }
  return text;
}

}  // namespace strata::detail
