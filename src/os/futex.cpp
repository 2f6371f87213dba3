// SPDX-License-Identifier: Apache-2.0
#include "os/futex.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

#include "os/clock.hpp"
#include "strata/detail/check.hpp"

namespace strata::os {

static_assert(sizeof(futex_word) == 4 && futex_word::is_always_lock_free);

namespace {

futex_outcome wait_on(futex_word& word, int operation, std::uint32_t expected,
                      std::int64_t timeout_ns, std::uint32_t kind = 0) noexcept {
  timespec timeout{};
  if (timeout_ns >= 0) {
    timeout.tv_sec = static_cast<std::time_t>(timeout_ns / 1'000'000'000);
    timeout.tv_nsec = static_cast<long>(timeout_ns % 1'000'000'000);
  }
  const long result = syscall(SYS_futex, &word, operation, expected,
                              timeout_ns >= 0 ? &timeout : nullptr, nullptr, kind);
  if (result == 0) return futex_outcome::woken;
  const int code = errno;
  if (code == EAGAIN) return futex_outcome::changed;
  if (code == ETIMEDOUT) return futex_outcome::timed_out;
  STRATA_CHECK(code == EINTR, code);
  return futex_outcome::interrupted;
}

// futex_waitv(2), of which the C library knows nothing.
long wait_on_several(futex_waitv* words, unsigned count) noexcept {
  return syscall(SYS_futex_waitv, words, count, 0, nullptr, 0);
}

int wake_on(futex_word& word, int operation, int count, std::uint32_t kinds = 0) noexcept {
  const long woken = syscall(SYS_futex, &word, operation, count, nullptr, nullptr, kinds);
  // EFAULT: the word was unmapped meanwhile, so nobody waits there any more.
  return woken > 0 ? static_cast<int>(woken) : 0;
}

}  // namespace

futex_outcome blocking_futex_wait(futex_word& word, std::uint32_t expected,
                                  std::int64_t timeout_ns) noexcept {
  return wait_on(word, FUTEX_WAIT_PRIVATE, expected, timeout_ns);
}

int futex_wake(futex_word& word, int count) noexcept {
  return wake_on(word, FUTEX_WAKE_PRIVATE, count);
}

futex_outcome blocking_futex_wait_as(std::uint32_t kind, futex_word& word, std::uint32_t expected,
                                     std::int64_t timeout_ns) noexcept {
  // This operation takes the time when it ends.
  const std::int64_t end_ns =
      timeout_ns == futex_forever_ns ? futex_forever_ns : now_ns() + timeout_ns;
  return wait_on(word, FUTEX_WAIT_BITSET_PRIVATE, expected, end_ns, kind);
}

int futex_wake_those(std::uint32_t kinds, futex_word& word, int count) noexcept {
  return wake_on(word, FUTEX_WAKE_BITSET_PRIVATE, count, kinds);
}

futex_outcome blocking_futex_wait_shared(futex_word& word, std::uint32_t expected,
                                         std::int64_t timeout_ns) noexcept {
  return wait_on(word, FUTEX_WAIT, expected, timeout_ns);
}

int futex_wake_shared(futex_word& word, int count) noexcept {
  return wake_on(word, FUTEX_WAKE, count);
}

bool can_wait_on_two() noexcept {
  // No words are a bad argument to those who know the call.
  static const bool can = wait_on_several(nullptr, 0) == -1 && errno == EINVAL;
  return can;
}

futex_outcome blocking_futex_wait_on_two(futex_word& own, std::uint32_t expected_own,
                                         futex_word& shared,
                                         std::uint32_t expected_shared) noexcept {
  futex_waitv words[2]{};
  words[0].val = expected_own;
  words[0].uaddr = reinterpret_cast<std::uintptr_t>(&own);
  words[0].flags = FUTEX_32 | FUTEX_PRIVATE_FLAG;
  words[1].val = expected_shared;
  words[1].uaddr = reinterpret_cast<std::uintptr_t>(&shared);
  words[1].flags = FUTEX_32;
  if (wait_on_several(words, 2) >= 0) return futex_outcome::woken;
  const int code = errno;
  if (code == EAGAIN) return futex_outcome::changed;
  STRATA_CHECK(code == EINTR, code);
  return futex_outcome::interrupted;
}

}  // namespace strata::os
