// SPDX-License-Identifier: Apache-2.0
#include "context/stack_pool.hpp"

#include <algorithm>
#include <array>
#include <new>
#include <string>
#include <thread>

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

constexpr std::uint64_t canary = 0x5afe'57ac'c0de'd00dU;
constexpr std::size_t canary_words = 8;

// Nothing of a stack is kept, and it begins anew when it is taken. ThreadSanitizer's fibers would
// be lost.
#if defined(STRATA_TSAN)
constexpr bool trims_all = false;
#else
constexpr bool trims_all = true;
#endif

// In a program with 100,000 threads batches of 64 took less time than those of 16. Those who take
// stacks have a batch each, and what they do not use is a page a stack.
constexpr std::size_t batch_max = 64;

// What the program asked for is there whatever the colour. An odd number of pages with the guard,
// so that the tops of neighbours lie in different sets of a cache.
std::size_t piece_bytes(std::size_t stack_bytes) {
  const std::size_t page = os::page_bytes();
  const std::size_t bytes =
      os::round_up_to_pages(stack_bytes + stack_pool::colours * stack_pool::colour_bytes);
  return bytes / page % 2 == 0 ? bytes : bytes + page;
}

// The address space for all stacks. It costs nothing until touched, but limits (ulimit -v, strict
// overcommit) can refuse it. Where one is near, half of what fits is left to the program, and to
// stacks of other sizes.
os::page_range reserve(std::size_t stride_bytes) {
  constexpr std::size_t most = std::size_t{64} << 30;
  constexpr std::size_t least = std::size_t{64} << 20;
  const auto whole = [&](std::size_t bytes) {
    return std::max<std::size_t>(bytes / stride_bytes, 1) * stride_bytes;
  };
  for (std::size_t bytes = most; bytes > least; bytes /= 2) {
    try {
      os::page_range all(whole(bytes));
      if (bytes == most) return all;
      all = os::page_range();
      return os::page_range(whole(bytes / 2));
    } catch (const error&) {
      // Half of it may still be enough.
    }
  }
  return os::page_range(whole(least));
}

// Spread over all numbers: whoever comes to the addresses of an earlier pool is none of those who
// ran there.
std::uint32_t first_life_of_next_pool() noexcept {
  static std::atomic<std::uint32_t> pools{0};
  return pools.fetch_add(1, std::memory_order_relaxed) * 0x9E37'79B1U;
}

}  // namespace

stack_pool::stack_pool(std::size_t stack_bytes, void (*entry)(void*), bool guards, whose whose_size)
    : guard_bytes_(os::page_bytes()),
      stack_bytes_(os::round_up_to_pages(stack_bytes)),
      whose_size_(whose_size),
      piece_bytes_(piece_bytes(stack_bytes)),
      stride_bytes_(piece_bytes_ + guard_bytes_),
      entry_(entry),
      range_(reserve(stride_bytes_)),
      guards_(guards),
      capacity_(range_.size() / stride_bytes_),
      first_life_(first_life_of_next_pool()),
      lives_(first_life_) {
  pieces.first = range_.data();
  pieces.stride = stride_bytes_;
  // Who needs some KiB of a stack of 8 MiB shall not get 2 MiB.
  os::use_small_pages(range_.data(), range_.size());
}

stack_pool::~stack_pool() {
#if defined(STRATA_TSAN)
  for (std::size_t i = 0; i < cut(); ++i) {
    if (header(i)->pool != nullptr) __tsan_destroy_fiber(header(i)->tsan_fiber);
  }
#endif
}

stack* stack_pool::header(std::size_t i) const noexcept {
  std::byte* const top = range_.data() + (i + 1) * stride_bytes_;
  return reinterpret_cast<stack*>(top - header_bytes - i % colours * colour_bytes);
}

void stack_pool::keep(std::size_t count) noexcept { kept_ = std::min(count, capacity_ - 1); }

stack* stack_pool::take() {
  std::unique_lock lock(mutex_);
  return take_leaving(kept_, lock);
}

stack* stack_pool::take_ready() {
  std::unique_lock lock(mutex_);
  if (only_kept_are_left()) return nullptr;
  if (!free_.empty()) return take_free();
  return ready_.empty() ? nullptr : take_fresh(lock);
}

stack* stack_pool::take_kept() noexcept {
  std::unique_lock lock(mutex_);
  try {
    return take_leaving(0, lock);
  } catch (const std::exception&) {
    return nullptr;
  }
}

error stack_pool::exhausted() const {
  return error("out of stacks: " + std::to_string(capacity_) + " stacks of " +
               std::to_string(stack_bytes_) +
               " bytes are in use; fork less deeply or use --strata-stack-bytes with less");
}

stack* stack_pool::take_leaving(std::size_t least, std::unique_lock<std::mutex>& lock) {
  // All of it again after each time that the lock was released: others take and give meanwhile.
  for (;;) {
    if (left() <= least) throw exhausted();
    if (!free_.empty()) return take_free();
    if (!ready_.empty()) return take_fresh(lock);
    make_another_ready(lock);
  }
}

stack* stack_pool::take_free() {
  stack* const s = free_.back();
  free_.pop_back();
  free_count_.store(free_.size(), std::memory_order_relaxed);
  untouched_ = std::min(untouched_, free_.size());
  if (free_.size() < trimmed()) {
    trimmed_.store(free_.size(), std::memory_order_relaxed);
    if (trims_all) begin(index_of(*s))->lives = lives_;
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

std::int64_t stack_pool::tidy(std::int64_t now_ns) noexcept {
  constexpr std::int64_t never = -1;
  if (free_count_.load(std::memory_order_relaxed) == 0) return never;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return unused_ns();
  tidy_some(now_ns, 256);
  if (is_tidy()) return never;
  if (trimmed() < std::min(to_trim_, untouched_)) return 0;
  return std::max<std::int64_t>(period_began_ns_ + unused_ns() - now_ns, 0);
}

void stack_pool::tidy_some(std::int64_t now_ns, std::size_t most) noexcept {
  if (now_ns - period_began_ns_ >= unused_ns()) {
    to_trim_ = untouched_;
    untouched_ = free_.size();
    period_began_ns_ = now_ns;
  }
  std::size_t done = trimmed();
  const std::size_t end = std::min({to_trim_, untouched_, done + most});
  while (done < end) give_back_memory(*free_[done++]);
  trimmed_.store(done, std::memory_order_relaxed);
}

void stack_pool::give_back_memory(const stack& s) noexcept {
  if (s.lives - first_life_ > lives_ - first_life_) lives_ = s.lives;
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
  for (std::size_t i = 0; i < cut(); ++i)
    all.deepest = std::max(all.deepest, depth(i, &all.resident));
  return all;
}

void stack_pool::make_another_ready(std::unique_lock<std::mutex>& lock) {
  if (cut() == capacity_ && preparing_ != 0) {
    // The last ones: somebody makes more of them ready than it needs itself.
    lock.unlock();
    std::this_thread::yield();
    lock.lock();
    return;
  }
  const batch b = cut_batch();
  std::size_t guarded = 0;
  if (b.end - b.first > 1) {
    // Others go on with batches of their own.
    ++preparing_;
    lock.unlock();
    guarded = make_ready(b);
    lock.lock();
    --preparing_;
  } else if (guards_) {
    guarded = guard_each(b, 0);
  }
  if (guarded < b.end - b.first) {
    guards_ = false;  // nor will there be room for the next
    if (b.first + guarded < first_unguarded_.load(std::memory_order_relaxed))
      first_unguarded_.store(b.first + guarded, std::memory_order_relaxed);
  }
  ready_.push_back(b);
}

stack* stack_pool::take_fresh(std::unique_lock<std::mutex>& lock) {
  batch& some = ready_.back();
  const std::size_t i = some.first++;
  if (some.first == some.end) ready_.pop_back();
  taken_.store(taken_max() + 1, std::memory_order_relaxed);
  lock.unlock();
  // Here, by the worker that will use it.
  return begin(i);
}

stack_pool::batch stack_pool::cut_batch() {
  // More with the number there are, as a vector grows: a program with few stacks has no memory for
  // many. Each of a few threads may have one that it does not use up.
  constexpr std::size_t part = 8;
  const std::size_t first = cut();
  if (first == capacity_) throw exhausted();
  const bool together = guards_ && in_batches_.load(std::memory_order_relaxed);
  const std::size_t most = together ? std::clamp<std::size_t>(first / part, 1, batch_max) : 1;
  const std::size_t end = first + std::min(most, capacity_ - first);
  if (free_.capacity() < end) free_.reserve(std::max<std::size_t>(64, 2 * end));
  ready_.reserve(ready_.size() + preparing_ + 1);
  pieces.cut.store(end, std::memory_order_release);
  return {first, end};
}

std::size_t stack_pool::make_ready(const batch& b) noexcept {
  using advice = os::page_range::advice;
  const std::size_t n = b.end - b.first;
  const std::size_t done =
      range_.advise_all({b.first * stride_bytes_, stride_bytes_, guard_bytes_, n}, advice::guard);
  if (done == 0) in_batches_.store(false, std::memory_order_relaxed);
  const std::size_t guarded = guard_each(b, done);
  if (done == 0) return guarded;
  // Where it fails, a touch does it.
  const std::size_t page = os::page_bytes();
  range_.advise_all({(b.first + 1) * stride_bytes_ - page, stride_bytes_, page, n},
                    advice::populate);
  return guarded;
}

std::size_t stack_pool::guard_each(const batch& b, std::size_t done) noexcept {
  try {
    for (; b.first + done < b.end; ++done)
      range_.guard((b.first + done) * stride_bytes_, guard_bytes_);
  } catch (const error&) {
    // The caller looks how many there are.
  }
  return done;
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
  s->lives = first_life_;
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
  return s->pool == nullptr || s->unguarded ? nullptr : s;
}

void check_canary(const stack& s) noexcept {
  const auto* const words = static_cast<const std::uint64_t*>(s.bottom);
  if (std::all_of(words, words + canary_words, [](std::uint64_t w) { return w == canary; })) return;
  // What lies below has been overwritten, perhaps another stack: nothing can be trusted now.
  report_overflow(s, *s.pool, false);
}

}  // namespace strata::detail
