// SPDX-License-Identifier: Apache-2.0
// Wakes one thread that sleeps in epoll. Ringing costs a system call only when that thread really
// sleeps, and once however often it is rung.
//
// The sleeper:                           whoever has news:
//   if (bell.may_sleep()) {                publish it
//     epoll_wait(... bell.get() ...)       bell.ring()
//     bell.awake()
//   }
//   look for news
//
// Either ring() comes before may_sleep(), which then says no, or it finds the sleeper asleep and
// writes the eventfd. Both are read-modify-writes of one word, so the looker sees the news.
#pragma once
#include <atomic>
#include <cstdint>

#include "os/descriptor.hpp"

namespace strata::net {

class doorbell {
 public:
  doorbell();  // throws strata::error when there are no descriptors left

  // True: the thread had to be woken. Any thread.
  bool ring() noexcept;

  // A hint, unless the caller has published something that the sleeper looks for once more when
  // may_sleep() has said yes: all of these are seq_cst.
  [[nodiscard]] bool is_anybody_asleep() const noexcept { return state_.load() == is_asleep; }

  // The sleeper's. False: it has been rung since the last time and must not sleep.
  [[nodiscard]] bool may_sleep() noexcept;
  void awake() noexcept;

  // Readable when rung; for epoll.
  [[nodiscard]] int get() const noexcept { return event_.get(); }

 private:
  enum state : std::uint32_t { is_awake, is_asleep, is_rung };
  std::atomic<std::uint32_t> state_{is_awake};
  os::descriptor event_;
  std::uint64_t owed_ = 0;  // the sleeper's: written, or about to be, and not read yet
};

}  // namespace strata::net
