// SPDX-License-Identifier: Apache-2.0
#include "context/program_locals.hpp"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "pthread/preload/native.hpp"
#include "pthread/preload/objects.hpp"
#include "pthread/preload/program_code.hpp"
#include "pthread/record.hpp"
#include "pthread/wait.hpp"
#include "strata/detail/worker.hpp"
#include "strata/pthread.h"

extern "C" void* __tls_get_addr(const unsigned long* module_and_offset);  // the loader's

namespace strata::detail {

// The thread-local storage of one object, and where in a copy of all it ends.
struct program_local {
  unsigned long module = 0;         // the loader's number; 0: not an object's
  bool is_late = false;             // each OS thread has it somewhere else
  std::ptrdiff_t from_pointer = 0;  // otherwise: at the same distance from every thread's pointer
  std::size_t bytes = 0;
  const std::byte* initial = nullptr;
  std::size_t initial_bytes = 0;  // zeros behind them
  preload::address_range object;
  std::size_t end = 0;
  // Written once, before `last_known` is: whoever has read that one reads these relaxed.
  std::atomic<program_local*> next{nullptr};

  [[nodiscard]] std::byte* here() const noexcept {
    if (!is_late) return thread_pointer() + from_pointer;
    const std::array<unsigned long, 2> wanted{module, 0};
    return static_cast<std::byte*>(__tls_get_addr(wanted.data()));
  }
  void reset() const noexcept {
    std::byte* const to = here();
    std::memcpy(to, initial, initial_bytes);
    std::memset(to + initial_bytes, 0, bytes - initial_bytes);
  }

 private:
  static std::byte* thread_pointer() noexcept {
    return static_cast<std::byte*>(__builtin_thread_pointer());
  }
};

namespace {

// In the order in which they were found. Never freed: others run on while main() has ended.
constinit program_local* first_known = nullptr;
// Release: with all before it. Acquire: whoever goes from the first to it.
constinit std::atomic<program_local*> last_known{nullptr};
constinit std::mutex finding;  // who writes to them
void* allocator = nullptr;

// In order; until f(l) gives false.
template <class F>
void for_each_until(const program_local* end, F f) {
  if (end == nullptr) return;
  for (const program_local* l = first_known;; l = l->next.load(std::memory_order_relaxed)) {
    if (!f(*l) || l == end) return;
  }
}

bool is_known(unsigned long module) noexcept {
  bool found = false;
  for_each_until(last_known.load(std::memory_order_acquire), [&](const program_local& l) {
    found = l.module == module;
    return !found;
  });
  return found;
}

void add(std::unique_ptr<program_local> l) {
  const std::lock_guard hold(finding);
  if (l->module != 0 && is_known(l->module)) return;
  program_local* const before = last_known.load(std::memory_order_relaxed);
  l->end = (before != nullptr ? before->end : 0) + l->bytes;
  program_local* const added = l.release();
  if (before == nullptr) {
    first_known = added;
  } else {
    before->next.store(added, std::memory_order_relaxed);
  }
  last_known.store(added, std::memory_order_release);
}

// Two variables of the C++ library are the thread's as well: what std::call_once(), a template,
// puts there is called by the function that it gives to pthread_once(), after a wait perhaps.
template <class T>
void add_variable(T* here) {
  auto l = std::make_unique<program_local>();
  l->from_pointer =
      reinterpret_cast<std::byte*>(here) - static_cast<std::byte*>(__builtin_thread_pointer());
  l->bytes = sizeof(T);
  add(std::move(l));
}

struct found_object {
  std::string path;
  std::unique_ptr<program_local> local;
};
using found_objects = std::vector<found_object>;

int look_at(dl_phdr_info* object, std::size_t, void* all) {
  if (object->dlpi_tls_modid == 0 || preload::is_the_systems(object->dlpi_name) ||
      is_known(object->dlpi_tls_modid))
    return 0;
  auto l = std::make_unique<program_local>();
  l->module = object->dlpi_tls_modid;
  l->object = preload::all_of(*object);
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = object->dlpi_phdr[i];
    if (part.p_type != PT_TLS) continue;
    if (object->dlpi_tls_data != nullptr)
      l->from_pointer = static_cast<std::byte*>(object->dlpi_tls_data) -
                        static_cast<std::byte*>(__builtin_thread_pointer());
    l->bytes = part.p_memsz;
    l->initial = reinterpret_cast<const std::byte*>(object->dlpi_addr + part.p_vaddr);
    l->initial_bytes = part.p_filesz;
  }
  // What an allocator keeps for a thread is in use whenever the runtime allocates.
  if (l->bytes != 0 && !l->object.holds(allocator))
    static_cast<found_objects*>(all)->push_back({object->dlpi_name, std::move(l)});
  return 0;
}

found_objects look_at_all() {
  found_objects all;
  dl_iterate_phdr(&look_at, &all);
  return all;
}

// How many objects have ever been loaded.
unsigned long long loaded_objects() noexcept {
  unsigned long long loaded = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* object, std::size_t, void* to) {
        *static_cast<unsigned long long*>(to) = object->dlpi_adds;
        return 1;
      },
      &loaded);
  return loaded;
}

// When all that has variables was looked for last. Release: when it has been added. Acquire: who
// need not look.
constinit std::atomic<unsigned long long> looked_at{0};

}  // namespace

void find_program_locals() {
  allocator = const_cast<void*>(preload::object_with("malloc"));
  add_variable(&std::__once_callable);
  add_variable(&std::__once_call);
  const unsigned long long loaded = loaded_objects();
  for (found_object& o : look_at_all()) add(std::move(o.local));
  looked_at.store(loaded, std::memory_order_release);
}

// They stay: threads that wait have copies, and the loader's number would be another's. One may go,
// and come back, before it is held. Without a lock of ours: the loader has one that it may hold
// where a constructor comes here.
static void keep_and_add_later() {
  std::vector<std::string> kept;
  for (found_object& o : look_at_all()) {
    if (dlopen(o.path.c_str(), RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE) != nullptr)
      kept.push_back(std::move(o.path));
  }
  for (found_object& o : look_at_all()) {
    if (std::find(kept.begin(), kept.end(), o.path) == kept.end()) continue;
    o.local->is_late = true;
    add(std::move(o.local));
  }
}

void find_later_program_locals() noexcept {
  const unsigned long long before = looked_at.load(std::memory_order_acquire);
  if (before == 0) return;  // main() has yet to begin
  const unsigned long long loaded = loaded_objects();
  if (loaded == before) return;
  const uninterrupted guard;
  const posix::kept_errno keep;
  try {
    keep_and_add_later();
    preload::find_later_program_code();
  } catch (const std::bad_alloc&) {
    return;  // the next one looks again
  }
  looked_at.store(loaded, std::memory_order_release);
}

program_locals::program_locals() noexcept
    : last_(last_known.load(std::memory_order_acquire)),
      bytes_(last_ != nullptr ? last_->end : 0) {}

void program_locals::save(std::byte* to) const noexcept {
  for_each_until(last_, [&](const program_local& l) {
    std::memcpy(to, l.here(), l.bytes);
    to += l.bytes;
    return true;
  });
}

void program_locals::load(const std::byte* from) const noexcept {
  for_each_until(last_, [&](const program_local& l) {
    std::memcpy(l.here(), from, l.bytes);
    from += l.bytes;
    return true;
  });
  const program_local* const now = last_known.load(std::memory_order_acquire);
  for (const program_local* l = last_; l != now;) {
    l = l->next.load(std::memory_order_relaxed);
    l->reset();
  }
}

void reset_program_locals() noexcept {
  for_each_until(last_known.load(std::memory_order_acquire), [](const program_local& l) {
    l.reset();
    return true;
  });
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
  bool ours = false;
  for_each_until(last_known.load(std::memory_order_acquire), [&](const program_local& l) {
    ours = l.object.holds(of);
    return !ours;
  });
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
