// SPDX-License-Identifier: Apache-2.0
// The exception that has left a fiber, if there is one; who hears of it, and whether somebody has.
#pragma once
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "os/futex.hpp"
#include "sched/failure.hpp"

namespace strata::detail {

class computation_failure {
 public:
  // Seq_cst: for those who look often, or before they begin something. Written with the lock.
  std::atomic<bool> is_there{false};

  // Of several the first counts, until it is settled and only some here have yet to be told of it:
  // then they hear of the next one, when that is settled. Where other nodes may be at it, until
  // settle(), tell(error) tells them before anybody settles it.
  template <class Tell>
  void begin(std::exception_ptr error, bool others, const Tell& tell) noexcept {
    const std::lock_guard lock(mutex_);
    if (error_ && !forget_when_told_) return;
    keep(std::move(error), others);
    if (others) tell(std::as_const(error_));
  }
  // Nothing of it moves on any node, so those who wait can be told. With `forget` no run() of this
  // node ends it: it ends when nobody listens, now or once they have been told.
  void settle(bool forget);
  void wait_until_settled() noexcept;

  // Null: there is none.
  [[nodiscard]] std::exception_ptr get();
  // The same, for whom it concerns.
  [[nodiscard]] std::exception_ptr take();
  // There is one, and nobody has been told yet.
  [[nodiscard]] bool is_untold();

  // l will hear of it, also of one that has happened already.
  void add(failure_listener& l) noexcept;
  void remove(failure_listener& l) noexcept;
  [[nodiscard]] bool has_listeners();
  // It is settled, and some listen.
  [[nodiscard]] bool is_awaited() const;
  // Whoever listens hears of it on worker w, and listens no more.
  void tell(worker& w);
  // For people: a line for each of the first listeners.
  [[nodiscard]] std::string describe_listeners();

  // Ends the one that was `seen`, and reports it if nobody has been told. Not while some listen or
  // may_end() says no, which is asked with the lock: then false. True where it has ended before.
  template <class MayEnd>
  [[nodiscard]] bool try_end(const std::exception_ptr& seen, const MayEnd& may_end) {
    const std::lock_guard lock(mutex_);
    if (error_ != seen) return true;
    if (first_ != nullptr || !may_end()) return false;
    if (!told_) report();
    forget();
    return true;
  }

 private:
  // With the lock.
  void stop_listening(failure_listener& l) noexcept;
  void keep(std::exception_ptr error, bool others) noexcept;
  void forget() noexcept;
  void forget_if_told() noexcept;
  void report() const noexcept;

  // Every wait for a completion writes to it; `is_there`, which every worker reads, lies elsewhere.
  alignas(64) mutable std::mutex mutex_;
  std::exception_ptr error_;
  bool told_ = false;
  bool forget_when_told_ = false;
  os::futex_word settled_{1};  // 0: other nodes may still be at it
#if defined(STRATA_TSAN)
  // The C++ library counts references to an exception where ThreadSanitizer does not see it: it
  // would report the last of several threads that let go of one. So we do, at the end.
  std::vector<std::exception_ptr> all_;
#endif
  failure_listener* first_ = nullptr;
  failure_listener* last_ = nullptr;
  std::size_t listening_ = 0;
};

}  // namespace strata::detail
