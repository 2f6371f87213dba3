// SPDX-License-Identifier: Apache-2.0
#include "pthread/preload/program_code.hpp"

#include <link.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <string_view>
#include <utility>
#include <vector>

#include "pthread/preload/allocators.hpp"
#include "pthread/preload/objects.hpp"
#include "pthread/preload/waiting_by_itself.hpp"

namespace strata::preload {
namespace {

// Of many libraries few are larger than the executable. Release when all are there; acquire by
// handlers on workers that have begun before. Null: nothing is the program's. Never freed: others
// run on while main() has ended.
using code_ranges = std::vector<address_range>;
constinit std::atomic<const code_ranges*> known{nullptr};

// Of what has come by dlopen(). Never freed, but used again for another library: who computes there
// may be looking. Nobody's: `end` is 0. Release, each: when `begin` is right. Acquire: who looks.
struct late_code {
  std::atomic<std::uintptr_t> begin{0};
  std::atomic<std::uintptr_t> end{0};
  late_code* next = nullptr;
};
constinit std::atomic<late_code*> latest{nullptr};
// Who writes to them. The loader is not asked meanwhile: it may hold its own where a constructor
// comes here.
constinit std::mutex noting;
constinit int being_closed = 0;
constinit std::uint64_t closings = 0;  // begun

void hold() { noting.lock(); }
void release() { noting.unlock(); }
// No child finds it held by a thread that it lacks. Before the program can register handlers of its
// own, as in fork.cpp.
[[gnu::constructor(101)]] void watch_forks() { pthread_atfork(&hold, &release, &release); }

struct allocators {
  const void* of_c = nullptr;
  const void* of_cxx = nullptr;
  bool are_the_executables = false;
};
constinit allocators found_allocators;  // before main()

struct code_search {
  allocators& from;
  bool is_first;  // before main()
  code_ranges others;
  bool has_seen_executable = false;
};

// Waits in the kernel by instructions of its own, not by the C library: a thread that were left
// with such a lock would leave it to a worker that waits for it and never comes back to the thread.
// And the kernel's own, which the C library calls wherever it likes; and what that loads for
// itself and calls with locks of its own.
bool is_left_out(const dl_phdr_info& object) noexcept {
  constexpr std::array<std::string_view, 2> names{"linux-vdso", "libnss_"};
  const std::string_view path = object.dlpi_name;
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return is_the_systems(path) || waits_by_itself(object) ||
         path.find("/gconv/") != std::string_view::npos ||
         std::any_of(names.begin(), names.end(), [&](auto n) { return name.starts_with(n); });
}

// Whoever gave way within `omp critical` would keep it from others of its worker, which wait for it
// in libgomp.
bool is_linked_with_libgomp(const dl_phdr_info& object) noexcept {
  const auto* const parts = object.dlpi_phdr;
  const auto* const last = parts + object.dlpi_phnum;
  const auto* const part =
      std::find_if(parts, last, [](const ElfW(Phdr) & p) { return p.p_type == PT_DYNAMIC; });
  if (part == last) return false;
  const auto* const entries = reinterpret_cast<const ElfW(Dyn)*>(object.dlpi_addr + part->p_vaddr);
  const char* names = nullptr;
  for (const auto* e = entries; e->d_tag != DT_NULL; ++e) {
    if (e->d_tag == DT_STRTAB) names = reinterpret_cast<const char*>(e->d_un.d_ptr);
  }
  for (const auto* e = entries; names != nullptr && e->d_tag != DT_NULL; ++e) {
    if (e->d_tag == DT_NEEDED && is_libgomp(names + e->d_un.d_val)) return true;
  }
  return false;
}

int look_at_code(dl_phdr_info* object, std::size_t, void* argument) {
  auto& search = *static_cast<code_search*>(argument);
  allocators& a = search.from;
  const bool is_executable = !search.has_seen_executable;
  search.has_seen_executable = true;
  const address_range all = all_of(*object);
  const bool allocates = all.holds(a.of_c) || all.holds(a.of_cxx);
  if (search.is_first && is_executable) a.are_the_executables = allocates;
  if (search.is_first && !is_executable && all.holds(a.of_c) && !is_left_out(*object))
    note_allocator(all);
  if (allocates || (!is_executable && is_left_out(*object))) return 0;
  if (!search.is_first && is_linked_with_libgomp(*object)) return 0;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = object->dlpi_phdr[i];
    if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0) continue;
    address_range code;
    code.add(object->dlpi_addr + part.p_vaddr, part.p_memsz);
    search.others.push_back(code);
  }
  return 0;
}

bool is_among(const code_ranges& all, std::uintptr_t at) noexcept {
  return std::any_of(all.begin(), all.end(),
                     [=](const address_range& r) { return r.begin <= at && at < r.end; });
}

bool is_late_code(std::uintptr_t at) noexcept {
  for (const late_code* l = latest.load(std::memory_order_acquire); l != nullptr; l = l->next) {
    if (at < l->end.load(std::memory_order_acquire) &&
        l->begin.load(std::memory_order_relaxed) <= at)
      return true;
  }
  return false;
}

// With `noting` held.
void forget_late_code() noexcept {
  for (late_code* l = latest.load(std::memory_order_relaxed); l != nullptr; l = l->next)
    l->end.store(0, std::memory_order_release);
}

// With `noting` held.
void note_late_code(const address_range& code) {
  late_code* l = latest.load(std::memory_order_relaxed);
  while (l != nullptr && l->end.load(std::memory_order_relaxed) != 0) l = l->next;
  if (l == nullptr) {
    l = new late_code;
    l->next = latest.load(std::memory_order_relaxed);
    latest.store(l, std::memory_order_release);
  }
  l->begin.store(code.begin, std::memory_order_relaxed);
  l->end.store(code.end, std::memory_order_release);
}

}  // namespace

void find_program_code() {
  // By its symbol, as others find it that is the program's: operator new(std::size_t).
  found_allocators = {object_with("malloc"), object_with("_Znwm")};
  code_search search{found_allocators, true, {}};
  dl_iterate_phdr(&look_at_code, &search);
  if (found_allocators.are_the_executables) return;
  known.store(std::make_unique<code_ranges>(std::move(search.others)).release(),
              std::memory_order_release);
}

void find_later_program_code() {
  const code_ranges* const first = known.load(std::memory_order_acquire);
  if (first == nullptr) return;
  std::uint64_t before = 0;
  {
    const std::lock_guard hold(noting);
    before = closings;
  }
  code_search search{found_allocators, false, {}};
  dl_iterate_phdr(&look_at_code, &search);
  const std::lock_guard hold(noting);
  // What has been seen may have gone; who closes it looks again.
  if (being_closed != 0 || closings != before) return;
  for (const address_range& code : search.others) {
    if (!is_among(*first, code.begin) && !is_late_code(code.begin)) note_late_code(code);
  }
}

closing_library::closing_library() noexcept {
  const std::lock_guard hold(noting);
  ++being_closed;
  ++closings;
  forget_late_code();
}

closing_library::~closing_library() {
  {
    const std::lock_guard hold(noting);
    --being_closed;
  }
  try {
    find_later_program_code();
  } catch (const std::bad_alloc&) {
    // none is interrupted there, until another one has been loaded
  }
}

bool is_program_code(std::uintptr_t at) noexcept {
  const code_ranges* const first = known.load(std::memory_order_acquire);
  return first != nullptr && (is_among(*first, at) || is_late_code(at));
}

}  // namespace strata::preload
