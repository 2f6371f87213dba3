// SPDX-License-Identifier: Apache-2.0
#include "context/program_locals.hpp"

#include <link.h>
#include <pthread.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "pthread/preload/native.hpp"
#include "pthread/preload/objects.hpp"
#include "pthread/record.hpp"
#include "strata/pthread.h"

namespace strata::detail {
namespace {

using preload::address_range;

// The thread-local storage of one object. All that are loaded with the program lie at the same
// distance from every thread's pointer.
struct segment {
  std::ptrdiff_t from_pointer;
  std::size_t bytes;
  const std::byte* initial;
  std::size_t initial_bytes;  // zeros behind them
  address_range object;
};

// Written before there are threads, and never freed: others run on while main() has ended.
constinit std::vector<segment>* segments = nullptr;
std::size_t all_bytes = 0;

std::span<const segment> known_segments() noexcept {
  return segments != nullptr ? std::span<const segment>(*segments) : std::span<const segment>();
}

std::byte* thread_pointer() noexcept { return static_cast<std::byte*>(__builtin_thread_pointer()); }

void add(const segment& s) {
  segments->push_back(s);
  all_bytes += s.bytes;
}

// Two variables of the C++ library are the thread's as well: what std::call_once(), a template,
// puts there is called by the function that it gives to pthread_once(), after a wait perhaps.
template <class T>
void add_variable(T* here) {
  static constexpr std::byte nothing{};
  add({reinterpret_cast<std::byte*>(here) - thread_pointer(), sizeof(T), &nothing, 0, {}});
}

int look_at(dl_phdr_info* object, std::size_t, void* allocator) {
  if (object->dlpi_tls_data == nullptr || preload::is_the_systems(object->dlpi_name)) return 0;
  segment found{};
  found.object = preload::all_of(*object);
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = object->dlpi_phdr[i];
    if (part.p_type != PT_TLS) continue;
    found.from_pointer = static_cast<std::byte*>(object->dlpi_tls_data) - thread_pointer();
    found.bytes = part.p_memsz;
    found.initial = reinterpret_cast<const std::byte*>(object->dlpi_addr + part.p_vaddr);
    found.initial_bytes = part.p_filesz;
  }
  // What an allocator keeps for a thread is in use whenever the runtime allocates.
  if (found.bytes == 0 || found.object.holds(allocator)) return 0;
  add(found);
  return 0;
}

}  // namespace

void find_program_locals() {
  segments = new std::vector<segment>;
  add_variable(&std::__once_callable);
  add_variable(&std::__once_call);
  dl_iterate_phdr(&look_at, const_cast<void*>(preload::object_with("malloc")));
}

std::size_t program_locals_bytes() noexcept { return all_bytes; }

void save_program_locals(std::byte* to) noexcept {
  for (const segment& s : known_segments()) {
    std::memcpy(to, thread_pointer() + s.from_pointer, s.bytes);
    to += s.bytes;
  }
}

void load_program_locals(const std::byte* from) noexcept {
  for (const segment& s : known_segments()) {
    std::memcpy(thread_pointer() + s.from_pointer, from, s.bytes);
    from += s.bytes;
  }
}

void reset_program_locals() noexcept {
  for (const segment& s : known_segments()) {
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
  const std::span<const segment> all_known = known_segments();
  const bool ours = std::any_of(all_known.begin(), all_known.end(),
                                [&](const segment& s) { return s.object.holds(of); });
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
