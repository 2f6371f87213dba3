// SPDX-License-Identifier: Apache-2.0
#include "context/program_locals.hpp"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "pthread/preload/native.hpp"
#include "pthread/record.hpp"
#include "strata/pthread.h"

namespace strata::detail {
namespace {

// The thread-local storage of one object. All that are loaded with the program lie at the same
// distance from every thread's pointer.
struct segment {
  std::ptrdiff_t from_pointer;
  std::size_t bytes;
  const std::byte* initial;
  std::size_t initial_bytes;  // zeros behind them
  std::uintptr_t begin, end;  // of the object
};

std::vector<segment> segments;  // written before there are threads
std::size_t all_bytes = 0;

std::byte* thread_pointer() noexcept { return static_cast<std::byte*>(__builtin_thread_pointer()); }

// Theirs is the OS thread's business: the runtime uses them in between, and for its own threads.
bool is_the_systems(std::string_view path) {
  constexpr std::array<std::string_view, 6> names{
      "libc.so", "ld-linux", "libstdc++.so", "libgcc_s.so", "libhwloc.so", "libstrata_pthread"};
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return std::any_of(names.begin(), names.end(), [&](auto n) { return name.starts_with(n); });
}

// What an allocator keeps for a thread is in use whenever the runtime allocates.
const void* base_of_allocator() noexcept {
  Dl_info about{};
  void* const allocate = dlsym(RTLD_DEFAULT, "malloc");
  return allocate != nullptr && dladdr(allocate, &about) != 0 ? about.dli_fbase : nullptr;
}

bool holds(const segment& s, const void* address) noexcept {
  const auto a = reinterpret_cast<std::uintptr_t>(address);
  return s.begin <= a && a < s.end;
}

int look_at(dl_phdr_info* object, std::size_t, void* allocator) {
  if (object->dlpi_tls_data == nullptr || is_the_systems(object->dlpi_name)) return 0;
  segment found{};
  found.begin = UINTPTR_MAX;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = object->dlpi_phdr[i];
    const std::uintptr_t at = object->dlpi_addr + part.p_vaddr;
    if (part.p_type == PT_LOAD) {
      found.begin = std::min(found.begin, at);
      found.end = std::max<std::uintptr_t>(found.end, at + part.p_memsz);
    } else if (part.p_type == PT_TLS) {
      found.from_pointer = static_cast<std::byte*>(object->dlpi_tls_data) - thread_pointer();
      found.bytes = part.p_memsz;
      found.initial = reinterpret_cast<const std::byte*>(at);
      found.initial_bytes = part.p_filesz;
    }
  }
  if (found.bytes == 0 || holds(found, allocator)) return 0;
  segments.push_back(found);
  all_bytes += found.bytes;
  return 0;
}

}  // namespace

void find_program_locals() { dl_iterate_phdr(&look_at, const_cast<void*>(base_of_allocator())); }

std::size_t program_locals_bytes() noexcept { return all_bytes; }

void save_program_locals(std::byte* to) noexcept {
  for (const segment& s : segments) {
    std::memcpy(to, thread_pointer() + s.from_pointer, s.bytes);
    to += s.bytes;
  }
}

void load_program_locals(const std::byte* from) noexcept {
  for (const segment& s : segments) {
    std::memcpy(thread_pointer() + s.from_pointer, from, s.bytes);
    from += s.bytes;
  }
}

void reset_program_locals() noexcept {
  for (const segment& s : segments) {
    std::byte* const here = thread_pointer() + s.from_pointer;
    std::memcpy(here, s.initial, s.initial_bytes);
    std::memset(here + s.initial_bytes, 0, s.bytes - s.initial_bytes);
  }
}

namespace {

// ---- their destructors ----

struct destruction {
  void (*function)(void*);
  void* object;
};
using destructions = std::vector<destruction>;

// Newest first; a destructor may make objects that have one.
void destroy(void* raw) {
  const std::unique_ptr<destructions> all(static_cast<destructions*>(raw));
  while (!all->empty()) {
    const destruction last = all->back();
    all->pop_back();
    last.function(last.object);
  }
}

pthread_key_t key_of_destructions() noexcept {
  static const pthread_key_t key = [] {
    pthread_key_t made{};
    if (strata_pthread_key_create(&made, &destroy) != 0) std::abort();
    return made;
  }();
  return key;
}

}  // namespace
}  // namespace strata::detail

// The C++ library registers destructors of thread_local objects with the C library, which runs them
// at the end of the OS thread.
extern "C" [[gnu::visibility("default")]] int forward_thread_atexit(
    void (*function)(void*), void* object, void* of) __asm__("__cxa_thread_atexit_impl");

int forward_thread_atexit(void (*function)(void*), void* object, void* of) {
  using namespace strata::detail;
  const bool ours =
      std::any_of(segments.begin(), segments.end(), [&](const segment& s) { return holds(s, of); });
  const posix::record* const r = ours ? posix::self_if_any() : nullptr;
  // Those of main() go at exit(), on its OS thread, which it never leaves.
  if (r == nullptr || r->is_os_thread || r->is_main) {
    using next = int (*)(void (*)(void*), void*, void*);
    static const auto real =
        reinterpret_cast<next>(strata::preload::find_real("__cxa_thread_atexit_impl"));
    return real(function, object, of);
  }
  const pthread_key_t key = key_of_destructions();
  auto* all = static_cast<destructions*>(strata_pthread_getspecific(key));
  if (all == nullptr) {
    all = new destructions;
    strata_pthread_setspecific(key, all);
  }
  all->push_back({function, object});
  return 0;
}
