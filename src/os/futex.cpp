// SPDX-License-Identifier: Apache-2.0
#include "os/futex.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

#include "strata/detail/check.hpp"

namespace strata::os {

static_assert(sizeof(futex_word) == 4 && futex_word::is_always_lock_free);

namespace {

futex_outcome wait_on(futex_word& word, int operation, std::uint32_t expected,
                      std::int64_t timeout_ns) noexcept {
  timespec timeout{};
  if (timeout_ns >= 0) {
    timeout.tv_sec = static_cast<std::time_t>(timeout_ns / 1'000'000'000);
    timeout.tv_nsec = static_cast<long>(timeout_ns % 1'000'000'000);
  }
  const long result = syscall(SYS_futex, &word, operation, expected,
                              timeout_ns >= 0 ? &timeout : nullptr, nullptr, 0);
  if (result == 0) return futex_outcome::woken;
  const int code = errno;
  if (code == EAGAIN) return futex_outcome::changed;
  if (code == ETIMEDOUT) return futex_outcome::timed_out;
  STRATA_CHECK(code == EINTR, code);
  return futex_outcome::interrupted;
}

int wake_on(futex_word& word, int operation, int count) noexcept {
  const long woken = syscall(SYS_futex, &word, operation, count, nullptr, nullptr, 0);
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

futex_outcome blocking_futex_wait_shared(futex_word& word, std::uint32_t expected,
                                         std::int64_t timeout_ns) noexcept {
  return wait_on(word, FUTEX_WAIT, expected, timeout_ns);
}

int futex_wake_shared(futex_word& word, int count) noexcept {
  return wake_on(word, FUTEX_WAKE, count);
}

}  // namespace strata::os
