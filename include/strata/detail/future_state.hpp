// SPDX-License-Identifier: Apache-2.0
// What a promise and its futures share: a result that comes once, and those who wait for it.
#pragma once
#include <atomic>
#include <cstdint>
#include <exception>
#include <future>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include "strata/detail/parking.hpp"
#include "strata/detail/thread_core.hpp"
#include "strata/detail/thread_exit.hpp"
#include "strata/detail/word_lock.hpp"

namespace strata::detail {

[[noreturn]] void refuse_future(std::future_errc why);

class future_state {
 public:
  future_state() = default;
  future_state(const future_state&) = delete;
  future_state& operator=(const future_state&) = delete;
  virtual ~future_state() = default;

  // ---- who brings the result ----
  // The right to set it, once. Throws promise_already_satisfied.
  void claim();
  // Setting it failed, and another may try.
  void unclaim() noexcept { claimed_.store(false, std::memory_order_release); }
  [[nodiscard]] bool is_claimed() const noexcept {
    return claimed_.load(std::memory_order_acquire);
  }
  // With the result in place. The state may be gone afterwards.
  void publish() noexcept;
  // Stores and publishes.
  void fail(std::exception_ptr error) noexcept;
  void break_promise() noexcept;
  // Once for each state. Throws future_already_retrieved.
  void hand_out();

  // ---- who waits ----
  // What was done before publish() is visible afterwards; for async(), what the thread did.
  void wait();
  [[nodiscard]] std::future_status wait_until(std::int64_t deadline_ns);
  [[nodiscard]] bool is_ready() const noexcept {
    return word_.load(std::memory_order_acquire) == ready;
  }
  void rethrow() const {
    if (error != nullptr) std::rethrow_exception(error);
  }

  std::exception_ptr error;

 protected:
  // Whoever waits first: makes the call, if it was put off until then.
  virtual void begin() {}
  // Whoever waits, once it is ready. False: what it waits for there had not come by the deadline.
  virtual bool finish(std::int64_t) { return true; }
  [[nodiscard]] virtual bool is_deferred() const noexcept { return false; }

 private:
  static constexpr std::uint32_t pending = 0;
  static constexpr std::uint32_t awaited = 1;  // pending, and somebody is parked
  static constexpr std::uint32_t ready = 2;
  static bool must_wait(void* self);

  std::atomic<std::uint32_t> word_{pending};
  std::atomic<bool> claimed_{false};
  std::atomic<bool> handed_out_{false};
};

template <class R>
struct result_state : future_state {
  using stored = std::conditional_t<
      std::is_void_v<R>, std::monostate,
      std::conditional_t<std::is_reference_v<R>, std::remove_reference_t<R>*, R>>;

  // Claimed by the caller.
  template <class... V>
  void store(V&&... v) {
    try {
      value.emplace(std::forward<V>(v)...);
    } catch (...) {
      unclaim();
      throw;
    }
  }
  // Stores the result of a call, or what left it.
  template <class F>
  void attempt(F&& f) {
    std::exception_ptr caught;
    try {
      if constexpr (std::is_void_v<R>) {
        std::forward<F>(f)();
        value.emplace();
      } else if constexpr (std::is_reference_v<R>) {
        value.emplace(std::addressof(std::forward<F>(f)()));
      } else {
        value.emplace(std::forward<F>(f)());
      }
    } catch (const thread_exit&) {
      break_promise();
      throw;
    } catch (const forced_unwinding&) {
      break_promise();
      throw;
    } catch (...) {
      caught = std::current_exception();
    }
    // Outside the handler, so that the futures alone decide when the exception ends.
    error = std::move(caught);
  }

  std::optional<stored> value;
};

// What a call keeps ends with it, however that ends.
template <class Call>
struct ends_with_it {
  std::optional<Call>& call;
  ~ends_with_it() { call.reset(); }
};

// async() with launch::deferred.
template <class R, class Call>
class deferred_state : public result_state<R> {
 public:
  explicit deferred_state(Call&& call) : call_(std::move(call)) {}

 private:
  void begin() override {
    if (begun_.exchange(true, std::memory_order_relaxed)) return;
    this->claim();
    this->attempt([this]() -> R { return (*call_)(); });
    call_.reset();
    this->publish();
  }
  bool is_deferred() const noexcept override { return !this->is_ready(); }

  std::optional<Call> call_;
  std::atomic<bool> begun_{false};
};

// Until the thread has ended, which stays to be joined; false: the deadline came first. One caller
// at a time. Throws as park().
[[nodiscard]] bool await_end(thread_block& b, std::int64_t deadline_ns);

// async() with launch::async. The last to let go of it waits for the thread, and so does whoever
// finds it ready: [futures.async]/5.
template <class R, class Call>
class async_state : public result_state<R> {
 public:
  // Leaves the call where it was when there is no thread for it.
  explicit async_state(std::optional<Call>& call) : call_(std::move(*call)) {
    this->claim();
    try {
      thread_ = thread([this] {
        {
          const ends_with_it<Call> call_ends{call_};
          this->attempt([this]() -> R { return (*call_)(); });
        }
        this->publish();
      });
    } catch (...) {
      call.emplace(std::move(*call_));
      throw;
    }
  }
  ~async_state() override {
    if (thread_.joinable()) thread_.join();
  }

 private:
  bool finish(std::int64_t deadline_ns) override {
    if (!joining_.lock_until(deadline_ns)) return false;
    const std::unique_ptr<word_lock, unlock> held(&joining_);
    if (!thread_.joinable()) return true;
    if (deadline_ns != parking::never && !await_end(*thread_.native_handle(), deadline_ns))
      return false;
    thread_.join();
    return true;
  }
  struct unlock {
    void operator()(word_lock* l) const noexcept { l->unlock(); }
  };

  std::optional<Call> call_;
  thread thread_;
  word_lock joining_;
};

}  // namespace strata::detail
