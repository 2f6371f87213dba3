// SPDX-License-Identifier: Apache-2.0
// What happens before what, across processes: a message may answer anything that this process has
// sent before. ThreadSanitizer sees one process only and has to be told; to everybody else these
// are nothing.
#pragma once
#include <atomic>
#include <cstddef>
#include <span>
#include <vector>

#include "strata/detail/cpu.hpp"

namespace strata::net {

#if defined(STRATA_TSAN)
inline std::atomic<unsigned> said_so_far{0};

// A message that is about to leave. It has been read when it says so: the answer may overwrite it.
class leaving_message {
 public:
  explicit leaving_message(std::span<const std::byte> body) : copy_(body.begin(), body.end()) {
    said_so_far.fetch_add(1, std::memory_order_release);
  }
  [[nodiscard]] std::span<const std::byte> body() const noexcept { return copy_; }

 private:
  const std::vector<std::byte> copy_;
};
inline void message_arrives() noexcept { (void)said_so_far.load(std::memory_order_acquire); }
#else
class leaving_message {
 public:
  explicit leaving_message(std::span<const std::byte> body) noexcept : body_(body) {}
  [[nodiscard]] std::span<const std::byte> body() const noexcept { return body_; }

 private:
  const std::span<const std::byte> body_;
};
inline void message_arrives() noexcept {}
#endif

}  // namespace strata::net
