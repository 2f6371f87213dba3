// SPDX-License-Identifier: Apache-2.0
#include "pthread/preload/waiting_by_itself.hpp"

#include <dlfcn.h>
#include <link.h>
#include <sys/auxv.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string_view>

#include "pthread/own_state.hpp"
#include "strata/detail/worker.hpp"
#include "strata/pthread.h"

namespace strata::preload {

// Packages of Python's have one of their own, libgomp-1b2c3d4e.so.1.
bool is_libgomp(std::string_view path) noexcept {
  return path.substr(path.rfind('/') + 1).starts_with("libgomp");
}

namespace {

struct loaded {
  std::string_view path;
  const ElfW(Ehdr) * header = nullptr;
  ElfW(Addr) moved_by = 0;  // from the addresses that it was made for
};

// What is loaded there. It may have come by dlopen(). Without the loader's lock where there is such
// a call: a constructor of a library may wait with it for the thread that it makes.
loaded object_at(void* address) noexcept {
#if __GLIBC_PREREQ(2, 35)
  dl_find_object found{};
  if (_dl_find_object(address, &found) != 0 || found.dlfo_link_map == nullptr) return {};
  const link_map& l = *found.dlfo_link_map;
  return {l.l_name, static_cast<const ElfW(Ehdr)*>(found.dlfo_map_start), l.l_addr};
#else
  Dl_info found{};
  link_map* l = nullptr;
  if (dladdr1(address, &found, reinterpret_cast<void**>(&l), RTLD_DL_LINKMAP) == 0) return {};
  return {found.dli_fname, static_cast<const ElfW(Ehdr)*>(found.dli_fbase), l->l_addr};
#endif
}

// Go's linker notes what it has made of which sources.
bool has_note_of_go(const std::byte* from, std::size_t bytes) noexcept {
  constexpr std::string_view go{"Go\0", 4};
  const auto padded = [](std::size_t n) { return (n + 3) / 4 * 4; };
  while (bytes >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, from, sizeof note);
    const std::size_t all = sizeof note + padded(note.n_namesz) + padded(note.n_descsz);
    if (all > bytes) return false;
    if (std::string_view(reinterpret_cast<const char*>(from + sizeof note), note.n_namesz) == go)
      return true;
    from += all;
    bytes -= all;
  }
  return false;
}

bool is_of_go(const ElfW(Phdr) * parts, std::size_t count, ElfW(Addr) moved_by) noexcept {
  return std::any_of(parts, parts + count, [&](const ElfW(Phdr) & part) {
    return part.p_type == PT_NOTE &&
           has_note_of_go(reinterpret_cast<const std::byte*>(moved_by + part.p_vaddr),
                          part.p_memsz);
  });
}

bool is_of_go(const loaded& object) noexcept {
  if (object.header == nullptr || std::memcmp(object.header, ELFMAG, SELFMAG) != 0) return false;
  const auto* const begin = reinterpret_cast<const std::byte*>(object.header);
  return is_of_go(reinterpret_cast<const ElfW(Phdr)*>(begin + object.header->e_phoff),
                  object.header->e_phnum, object.moved_by);
}

bool waits_by_itself(const loaded& object) noexcept {
  return is_libgomp(object.path) || is_of_go(object);
}

// main() is then a thread that waits so.
bool is_program_of_go() noexcept {
  static const bool is = is_of_go(object_at(reinterpret_cast<void*>(getauxval(AT_ENTRY))));
  return is;
}

}  // namespace

bool waits_by_itself(const dl_phdr_info& object) noexcept {
  return is_libgomp(object.dlpi_name) ||
         is_of_go(object.dlpi_phdr, object.dlpi_phnum, object.dlpi_addr);
}

int create_thread(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                  void* argument) {
  if (!is_program_of_go() && !waits_by_itself(object_at(__builtin_return_address(0))))
    return strata_pthread_create(thread, attributes, start, argument);
  // It is no worker: it runs where the caller may, and takes the signals that the caller takes, as
  // do programs that it starts.
  const detail::uninterrupted guard;
  const detail::posix::own_state of_caller;
  return pthread_create(thread, attributes, start, argument);
}

}  // namespace strata::preload
