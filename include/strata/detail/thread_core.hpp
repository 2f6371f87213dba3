// SPDX-License-Identifier: Apache-2.0
// thread, jthread and this_thread: what the locks and everything else of strata/thread.hpp are
// built on.
#pragma once
#include <chrono>
#include <compare>
#include <functional>
#include <stop_token>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>

#include "strata/detail/deadline.hpp"
#include "strata/detail/join.hpp"
#include "strata/detail/parking.hpp"
#include "strata/detail/thread_block.hpp"
#include "strata/detail/thread_exit.hpp"

namespace strata {

namespace detail {

[[noreturn]] void refuse_join();

// Function: the program's, by which the thread is called where it has no name.
template <class Call, class Function>
struct thread_call : thread_block {
  explicit thread_call(Call&& c) : thread_block(type_of, sizeof(thread_call)), call(std::move(c)) {
    if constexpr (!std::is_trivially_destructible_v<Call>) destroy = &destroy_call;
  }
  static void destroy_call(thread_block& b) noexcept { static_cast<thread_call&>(b).call.~Call(); }
  static void invoke(thread_block& b) { static_cast<thread_call&>(b).call(); }
  static void body(task& t) { run_thread(static_cast<thread_call&>(t), &invoke); }
  static constexpr task_type type_of{&run_on_stack, &body, nullptr, &type_name<Function>};
  union {
    Call call;
  };
  ~thread_call() {}
};

}  // namespace detail

class thread;

/// std::thread, with the same semantics and exceptions.
class thread {
 public:
  /// Identifies a thread while it exists: a strata::thread, any other task, or an OS thread.
  class id {
   public:
    id() noexcept = default;
    friend auto operator<=>(const id&, const id&) noexcept = default;
    template <class C, class T>
    friend std::basic_ostream<C, T>& operator<<(std::basic_ostream<C, T>& out, id i) {
      return out << i.what_;
    }

   private:
    friend class thread;
    friend struct std::hash<id>;
    friend id this_thread_id() noexcept;
    explicit id(const void* what) noexcept : what_(what) {}
    const void* what_ = nullptr;
  };
  using native_handle_type = detail::thread_block*;

  thread() noexcept = default;
  /// Begins f(args...), copied or moved into the thread, which destroys them at its end. Throws
  /// misuse_error outside a runtime, std::system_error (resource_unavailable_try_again) without
  /// memory. About 20 ns.
  template <class F, class... Args>
  requires(
      !std::is_same_v<std::remove_cvref_t<F>, thread> &&
      !std::is_same_v<std::remove_cvref_t<F>, thread_attributes>) explicit thread(F&& f,
                                                                                  Args&&... args)
      : block_(begin(nullptr, std::forward<F>(f), std::forward<Args>(args)...)) {}
  /// The same with attributes.
  template <class F, class... Args>
  explicit thread(const thread_attributes& a, F&& f, Args&&... args)
      : block_(begin(&a, std::forward<F>(f), std::forward<Args>(args)...)) {}
  thread(thread&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
  /// std::terminate() if *this is joinable.
  thread& operator=(thread&& other) noexcept {
    if (joinable()) std::terminate();
    block_ = std::exchange(other.block_, nullptr);
    return *this;
  }
  /// std::terminate() if *this is joinable.
  ~thread() {
    if (joinable()) std::terminate();
  }

  void swap(thread& other) noexcept { std::swap(block_, other.block_); }
  [[nodiscard]] bool joinable() const noexcept { return block_ != nullptr; }
  /// Suspends the caller until the thread has ended; what it did is visible then. Throws
  /// std::system_error: invalid_argument if not joinable, resource_deadlock_would_occur for the
  /// calling thread itself.
  void join();
  void detach();
  [[nodiscard]] id get_id() const noexcept { return id(block_); }
  [[nodiscard]] native_handle_type native_handle() const noexcept { return block_; }
  /// Workers of the calling task's runtime; outside, of the machine.
  [[nodiscard]] static unsigned hardware_concurrency() noexcept;

 private:
  friend id this_thread_id() noexcept;
  template <class F, class... Args>
  static detail::thread_block* begin(const thread_attributes* a, F&& f, Args&&... args) {
    auto call = [function = std::decay_t<F>(std::forward<F>(f)),
                 values =
                     std::tuple<std::decay_t<Args>...>(std::forward<Args>(args)...)]() mutable {
      std::apply([&](auto&... v) { std::invoke(std::move(function), std::move(v)...); }, values);
    };
    const detail::uninterrupted guard;
    using block = detail::thread_call<decltype(call), std::decay_t<F>>;
    static_assert(alignof(block) <= 16, "a thread's function must not be over-aligned");
    detail::worker& w = detail::worker_for_new_thread();
    void* memory = nullptr;
    block* b = nullptr;
    try {
      memory = w.frames.allocate(sizeof(block));
      b = ::new (memory) block(std::move(call));
    } catch (...) {
      detail::give_up_thread(memory, sizeof(block));
      throw;
    }
    if (a != nullptr) {
      try {
        detail::set_attributes(*b, *a);
      } catch (...) {
        detail::drop_thread(*b);
        throw;
      }
    }
    detail::start_thread(*b);
    return b;
  }

  detail::thread_block* block_ = nullptr;
};

[[nodiscard]] thread::id this_thread_id() noexcept;

inline void swap(thread& a, thread& b) noexcept { a.swap(b); }

namespace this_thread {

/// Lets others run that are ready; returns at once if there are none. About 10 ns.
void yield() noexcept;
[[nodiscard]] thread::id get_id() noexcept;
void detail_sleep_until(std::int64_t deadline_ns);

/// Suspends the caller at least that long.
template <class Rep, class Period>
void sleep_for(const std::chrono::duration<Rep, Period>& time) {
  detail_sleep_until(detail::deadline_after(time));
}
template <class Clock, class Duration>
void sleep_until(const std::chrono::time_point<Clock, Duration>& time) {
  while (Clock::now() < time) detail_sleep_until(detail::deadline_at(time));
}

}  // namespace this_thread

/// std::jthread.
class jthread {
 public:
  using id = thread::id;
  using native_handle_type = thread::native_handle_type;

  jthread() noexcept : stop_(std::nostopstate) {}
  template <class F, class... Args>
  requires(!std::is_same_v<std::remove_cvref_t<F>, jthread>) explicit jthread(F&& f, Args&&... args)
      : stop_(), thread_(start(stop_, std::forward<F>(f), std::forward<Args>(args)...)) {}
  jthread(jthread&&) noexcept = default;
  jthread& operator=(jthread&& other) noexcept {
    if (this == &other) return *this;
    end();
    stop_ = std::move(other.stop_);
    thread_ = std::move(other.thread_);
    return *this;
  }
  ~jthread() { end(); }

  void swap(jthread& other) noexcept {
    std::swap(stop_, other.stop_);
    thread_.swap(other.thread_);
  }
  [[nodiscard]] bool joinable() const noexcept { return thread_.joinable(); }
  void join() { thread_.join(); }
  void detach() { thread_.detach(); }
  [[nodiscard]] id get_id() const noexcept { return thread_.get_id(); }
  [[nodiscard]] native_handle_type native_handle() const noexcept {
    return thread_.native_handle();
  }
  [[nodiscard]] std::stop_source get_stop_source() noexcept { return stop_; }
  [[nodiscard]] std::stop_token get_stop_token() const noexcept { return stop_.get_token(); }
  bool request_stop() noexcept {
    // No timer may take the OS thread away: std::stop_callback remembers us by it.
    const detail::uninterrupted guard;
    return stop_.request_stop();
  }
  [[nodiscard]] static unsigned hardware_concurrency() noexcept {
    return thread::hardware_concurrency();
  }

 private:
  template <class F, class... Args>
  static thread start(std::stop_source& stop, F&& f, Args&&... args) {
    if constexpr (std::is_invocable_v<std::decay_t<F>, std::stop_token, std::decay_t<Args>...>) {
      return thread(std::forward<F>(f), stop.get_token(), std::forward<Args>(args)...);
    } else {
      return thread(std::forward<F>(f), std::forward<Args>(args)...);
    }
  }
  void end() {
    if (!joinable()) return;
    request_stop();
    join();
  }

  std::stop_source stop_;
  thread thread_;
};

}  // namespace strata

template <>
struct std::hash<strata::thread::id> {
  std::size_t operator()(strata::thread::id i) const noexcept {
    return std::hash<const void*>()(i.what_);
  }
};
