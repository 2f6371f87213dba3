// SPDX-License-Identifier: Apache-2.0
// The standard's jthread: a thread that is asked to stop, and joined, where it would end joinable.
#pragma once
#include <type_traits>
#include <utility>

#include "strata/detail/thread_core.hpp"
#include "strata/stop_token.hpp"

namespace strata {

/// std::jthread.
class jthread {
 public:
  using id = thread::id;
  using native_handle_type = thread::native_handle_type;

  /// No thread.
  jthread() noexcept : stop_(nostopstate) {}
  /// As thread's; f is called with a stop_token before the arguments if it takes one, or a
  /// std::stop_token.
  template <class F, class... Args>
  requires(
      !std::is_same_v<std::remove_cvref_t<F>, jthread> &&
      !std::is_same_v<std::remove_cvref_t<F>, thread_attributes>) explicit jthread(F&& f,
                                                                                   Args&&... args)
      : stop_(), thread_(start(nullptr, stop_, std::forward<F>(f), std::forward<Args>(args)...)) {}
  /// The same with attributes.
  template <class F, class... Args>
  explicit jthread(const thread_attributes& a, F&& f, Args&&... args)
      : stop_(), thread_(start(&a, stop_, std::forward<F>(f), std::forward<Args>(args)...)) {}
  /// The other is not joinable afterwards.
  jthread(jthread&&) noexcept = default;
  /// What *this was before ends as in the destructor.
  jthread& operator=(jthread&& other) noexcept {
    if (this == &other) return *this;
    end();
    stop_ = std::move(other.stop_);
    thread_ = std::move(other.thread_);
    return *this;
  }
  /// If joinable: requests a stop, and joins, which suspends the caller.
  ~jthread() { end(); }

  /// Exchanges threads and stop states.
  void swap(jthread& other) noexcept {
    std::swap(stop_, other.stop_);
    thread_.swap(other.thread_);
  }
  /// These are as thread's.
  [[nodiscard]] bool joinable() const noexcept { return thread_.joinable(); }
  void join() { thread_.join(); }
  void detach() { thread_.detach(); }
  [[nodiscard]] id get_id() const noexcept { return thread_.get_id(); }
  [[nodiscard]] native_handle_type native_handle() const noexcept {
    return thread_.native_handle();
  }
  /// The stop state that its function has been given a token of. Never block.
  [[nodiscard]] stop_source get_stop_source() noexcept { return stop_; }
  [[nodiscard]] stop_token get_stop_token() const noexcept { return stop_.get_token(); }
  /// As stop_source::request_stop().
  bool request_stop() noexcept { return stop_.request_stop(); }
  /// As thread's.
  [[nodiscard]] static unsigned hardware_concurrency() noexcept {
    return thread::hardware_concurrency();
  }

 private:
  template <class F, class... Args>
  static thread start(const thread_attributes* a, stop_source& stop, F&& f, Args&&... args) {
    thread made;
    if constexpr (std::is_invocable_v<std::decay_t<F>, stop_token, std::decay_t<Args>...>) {
      made.block_ =
          thread::begin(a, std::forward<F>(f), stop.get_token(), std::forward<Args>(args)...);
    } else {
      made.block_ = thread::begin(a, std::forward<F>(f), std::forward<Args>(args)...);
    }
    return made;
  }
  void end() {
    if (!joinable()) return;
    request_stop();
    join();
  }

  stop_source stop_;
  thread thread_;
};

inline void swap(jthread& a, jthread& b) noexcept { a.swap(b); }

}  // namespace strata
