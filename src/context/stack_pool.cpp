// SPDX-License-Identifier: Apache-2.0
#include "context/stack_pool.hpp"

#include <algorithm>
#include <array>
#include <new>
#include <string>

#include "context/overflow.hpp"
#include "context/switch.hpp"
#include "os/clock.hpp"
#include "strata/detail/cpu.hpp"
#include "strata/error.hpp"

#if defined(STRATA_ASAN)
#include <sanitizer/asan_interface.h>
#endif
#if defined(STRATA_TSAN)
#include <sanitizer/tsan_interface.h>
#endif

namespace strata::detail {
namespace {

// What a fork leaves for the calls below it: functions of the program and of the C library that do
// not fork. Throwing alone takes some 6 KiB: the unwinder, and the dynamic linker's first look at
// it, which saves all vector registers.
std::size_t reserve_for_calls(std::size_t stack_bytes) {
  return std::max<std::size_t>(stack_bytes / 4, 8 * 1024);
}

constexpr std::uint64_t canary = 0x5afe'57ac'c0de'd00dU;
constexpr std::size_t canary_words = 8;

// Nothing of a stack is kept, and it begins anew when it is taken. ThreadSanitizer's fibers would
// be lost.
#if defined(STRATA_TSAN)
constexpr bool trims_all = false;
#else
constexpr bool trims_all = true;
#endif

constexpr std::int64_t unused_ns = 1'000'000'000;

// What the program asked for is there whatever the colour. An odd number of pages with the guard,
// so that the tops of neighbours lie in different sets of a cache.
std::size_t piece_bytes(std::size_t stack_bytes) {
  const std::size_t page = os::page_bytes();
  const std::size_t bytes =
      os::round_up_to_pages(stack_bytes + stack_pool::colours * stack_pool::colour_bytes);
  return bytes / page % 2 == 0 ? bytes : bytes + page;
}

// The address space for all stacks. It costs nothing until touched, but limits (ulimit -v, strict
// overcommit) can refuse it.
os::page_range reserve(std::size_t stride_bytes) {
  for (std::size_t bytes = std::size_t{64} << 30; bytes > (std::size_t{64} << 20); bytes /= 2) {
    try {
      return os::page_range(bytes / stride_bytes * stride_bytes);
    } catch (const error&) {
      // Half of it may still be enough.
    }
  }
  return os::page_range((std::size_t{64} << 20) / stride_bytes * stride_bytes + stride_bytes);
}

}  // namespace

stack_pool::stack_pool(std::size_t stack_bytes, void (*entry)(void*), bool guards)
    : guard_bytes_(os::page_bytes()),
      stack_bytes_(os::round_up_to_pages(stack_bytes)),
      piece_bytes_(piece_bytes(stack_bytes)),
      stride_bytes_(piece_bytes_ + guard_bytes_),
      entry_(entry),
      range_(reserve(stride_bytes_)),
      guards_(guards),
      capacity_(range_.size() / stride_bytes_) {
  pieces.first = range_.data();
  pieces.stride = stride_bytes_;
}

stack_pool::~stack_pool() {
#if defined(STRATA_TSAN)
  for (std::size_t i = 0; i < pieces.cut.load(); ++i) __tsan_destroy_fiber(header(i)->tsan_fiber);
#endif
}

stack* stack_pool::header(std::size_t i) const noexcept {
  std::byte* const top = range_.data() + (i + 1) * stride_bytes_;
  return reinterpret_cast<stack*>(top - header_bytes - i % colours * colour_bytes);
}

stack* stack_pool::take() {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) return cut();
  stack* const s = free_.back();
  free_.pop_back();
  free_count_.store(free_.size(), std::memory_order_relaxed);
  untouched_ = std::min(untouched_, free_.size());
  if (free_.size() < trimmed_) {
    trimmed_ = free_.size();
    if (trims_all) begin(index_of(*s));
  }
  return s;
}

void stack_pool::give(stack* s) noexcept {
  if (s->unguarded) [[unlikely]]
    check_canary(*s);
  const std::lock_guard lock(mutex_);
  free_.push_back(s);  // has room for all there are: see cut()
  free_count_.store(free_.size(), std::memory_order_relaxed);
  // Seldom, and little at a time: a caller should not notice.
  if ((++gives_ & 63U) == 0) [[unlikely]]
    tidy_some(os::now_ns(), 16);
}

void stack_pool::tidy(std::int64_t now_ns) noexcept {
  if (free_count_.load(std::memory_order_relaxed) == 0) return;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock.owns_lock()) tidy_some(now_ns, 256);
}

void stack_pool::tidy_some(std::int64_t now_ns, std::size_t most) noexcept {
  if (now_ns - period_began_ns_ >= unused_ns) {
    to_trim_ = untouched_;
    untouched_ = free_.size();
    period_began_ns_ = now_ns;
  }
  const std::size_t end = std::min({to_trim_, untouched_, trimmed_ + most});
  while (trimmed_ < end) give_back_memory(*free_[trimmed_++]);
}

void stack_pool::give_back_memory(const stack& s) noexcept {
  const std::size_t i = index_of(s);
  const std::size_t used = depth(i, nullptr);
  if (used > deepest_.load(std::memory_order_relaxed))
    deepest_.store(used, std::memory_order_relaxed);
  const std::size_t bottom = i * stride_bytes_ + guard_bytes_;
  std::size_t end = bottom + piece_bytes_;
  if (!trims_all) {
    // All below what it needs to go on.
    const auto keep = static_cast<std::size_t>(static_cast<std::byte*>(s.sp) - range_.data());
    end = keep / os::page_bytes() * os::page_bytes();
  }
  if (end > bottom) range_.decommit(bottom, end - bottom);
}

std::size_t stack_pool::depth(std::size_t i, std::size_t* resident) const noexcept {
  const std::size_t page = os::page_bytes();
  const std::size_t bottom = i * stride_bytes_ + guard_bytes_;
  const std::size_t pages = piece_bytes_ / page;
  std::array<unsigned char, 4096> there;
  std::size_t lowest = pages;
  for (std::size_t k = 0; k < pages; k += there.size()) {
    const std::size_t n = std::min(there.size(), pages - k);
    if (!range_.residency(bottom + k * page, n * page, there.data())) return 0;
    for (std::size_t j = 0; j < n; ++j) {
      if (there[j] == 0) continue;
      if (resident != nullptr) *resident += page;
      // The canary's page says nothing.
      if (k + j != 0 || i < first_unguarded_.load(std::memory_order_relaxed))
        lowest = std::min(lowest, k + j);
    }
  }
  return (pages - lowest) * page;
}

stack_pool::use stack_pool::measure() const noexcept {
  use all{deepest_.load(std::memory_order_relaxed), 0};
  for (std::size_t i = 0; i < taken_max(); ++i)
    all.deepest = std::max(all.deepest, depth(i, &all.resident));
  return all;
}

stack* stack_pool::cut() {
  const std::size_t i = pieces.cut.load(std::memory_order_relaxed);
  const std::size_t offset = i * stride_bytes_;
  if (i == capacity_) {
    throw error("out of stacks: " + std::to_string(i) + " stacks of " +
                std::to_string(stack_bytes_) +
                " bytes are in use; fork less deeply or use --strata-stack-bytes with less");
  }
  if (free_.capacity() <= i) free_.reserve(std::max<std::size_t>(64, 2 * i));
  if (guards_) {
    try {
      range_.guard(offset, guard_bytes_);
    } catch (const error&) {
      guards_ = false;  // nor will there be room for the next
    }
  }
  if (!guards_ && i < first_unguarded_.load(std::memory_order_relaxed))
    first_unguarded_.store(i, std::memory_order_relaxed);
  stack* const s = begin(i);
  pieces.cut.store(i + 1, std::memory_order_release);
  return s;
}

stack* stack_pool::begin(std::size_t i) {
  std::byte* const lowest = range_.data() + i * stride_bytes_ + guard_bytes_;
#if defined(STRATA_ASAN)
  // The stacks of an earlier runtime may have lain here, and frames that never return stay
  // poisoned.
  __asan_unpoison_memory_region(lowest, piece_bytes_);
#endif
  stack* s = ::new (static_cast<void*>(header(i))) stack;
  s->pool = this;
  static std::atomic<unsigned> last_number{0};
  s->number = last_number.fetch_add(1, std::memory_order_relaxed) + 1;
  s->bottom = lowest;
  s->unguarded = i >= first_unguarded_.load(std::memory_order_relaxed);
  if (s->unguarded) std::fill_n(reinterpret_cast<std::uint64_t*>(lowest), canary_words, canary);
  s->bytes = static_cast<std::size_t>(reinterpret_cast<std::byte*>(s) - lowest);
  s->limit = reinterpret_cast<std::uintptr_t>(lowest) + reserve_for_calls(s->bytes);
  s->sp = make_context(s, entry_, s);
#if defined(STRATA_TSAN)
  s->tsan_fiber = __tsan_create_fiber(0);
#endif
  return s;
}

const stack* stack_pool::guarding(const void* address) const noexcept {
  const auto a = reinterpret_cast<std::uintptr_t>(address);
  const auto first = reinterpret_cast<std::uintptr_t>(range_.data());
  if (a < first || a >= first + range_.size()) return nullptr;
  const std::size_t i = (a - first) / stride_bytes_;
  if (i >= pieces.cut.load(std::memory_order_acquire)) return nullptr;
  if ((a - first) % stride_bytes_ >= guard_bytes_) return nullptr;
  const stack* const s = header(i);
  return s->unguarded ? nullptr : s;
}

void check_canary(const stack& s) noexcept {
  const auto* const words = static_cast<const std::uint64_t*>(s.bottom);
  if (std::all_of(words, words + canary_words, [](std::uint64_t w) { return w == canary; })) return;
  // What lies below has been overwritten, perhaps another stack: nothing can be trusted now.
  report_overflow(s, s.pool->stack_bytes(), false);
}

}  // namespace strata::detail
