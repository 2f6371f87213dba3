// SPDX-License-Identifier: Apache-2.0
// What the standard leaves undefined, and would go unnoticed: unlocking what one does not have,
// destroying what is in use, counting beyond the end. In builds with STRATA_DEBUG_CHECKS (Debug and
// sanitizer builds) it ends the program with one line that says what was done to which object, by
// whom, and what to do. In others nothing is kept for that, and nothing looked at.
//
// With the checks some objects are larger. The macro is one of those that the library's CMake
// target and strata.pc give to their users (cmake/StrataLibrary.cmake), so whoever includes this
// header sees the objects as the library does.
#pragma once
#include <atomic>
#include <cstdint>

namespace strata::detail {

#if defined(STRATA_DEBUG_CHECKS)
inline constexpr bool uses_are_checked = true;
#else
inline constexpr bool uses_are_checked = false;
#endif

// Prints "strata: <kind> at <object> <wrong>, by <the caller>: <advice>" and aborts.
[[noreturn]] void refuse_use(const char* kind, const void* object, const char* wrong,
                             const char* advice) noexcept;

// `fine` is evaluated in every build: where that costs something, ask uses_are_checked first.
constexpr void check_use(bool fine, const char* kind, const void* object, const char* wrong,
                         const char* advice) noexcept {
  if constexpr (uses_are_checked) {
    if (!fine) refuse_use(kind, object, wrong, advice);
  }
}

// At the end of an object: nobody may have it, nor wait at one of these addresses (null: none).
void check_end(const char* kind, const void* object, bool is_held, const void* queue,
               const void* other_queue = nullptr) noexcept;

#if defined(STRATA_DEBUG_CHECKS)

// Who has a lock, as far as 32 bits tell: some threads are taken for each other, so not every
// misuse is seen, but what is told is true.
class lock_owner {
 public:
  // The caller has got it.
  void take() noexcept { who_.store(caller(), std::memory_order_relaxed); }
  // The caller is about to unlock `lock`.
  void leave(const char* kind, const void* lock) noexcept {
    const std::uint32_t who = who_.load(std::memory_order_relaxed);
    check_use(who != 0, kind, lock, "is unlocked, which nobody holds",
              "unlock it once for each time that it was locked");
    check_use(who == caller(), kind, lock, "is unlocked, which another thread holds",
              "let the thread that locked it unlock it; to hand something over, use a semaphore");
    who_.store(0, std::memory_order_relaxed);
  }

 private:
  [[nodiscard]] static std::uint32_t caller() noexcept;  // never 0
  std::atomic<std::uint32_t> who_{0};
};

#else

class lock_owner {
 public:
  void take() noexcept {}
  void leave(const char*, const void*) noexcept {}
};

#endif

}  // namespace strata::detail
