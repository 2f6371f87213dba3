// SPDX-License-Identifier: Apache-2.0
// The standard's stop tokens for threads of strata/thread.hpp, whose callbacks may wait.
//
//   strata::jthread worker([&](strata::stop_token stop) {
//     const strata::stop_callback tell(stop, [&] {
//       const std::lock_guard lock(m);  // a strata::mutex: may suspend
//       over = true;
//     });
//     ...
//   });  // requests a stop, and joins
//
// The C++ library's know OS threads only. The end of a std::stop_callback does not wait for a
// callback that another thread of the same worker is in the middle of, and stops the worker for one
// of another worker. The end of a strata::stop_callback suspends the thread, and tells threads
// apart by what they are, wherever they go on.
//
// Everything here may be used anywhere: in threads and tasks, in preemptible ones too, in fibers,
// by OS threads outside a runtime. Only one thing waits, the end of a callback that another thread
// is in. That it must not be in a fiber, which cannot wait: std::terminate().
//
// A source costs some 20 ns, and so does a request, and a callback that comes and goes; all three
// some 70 ns, and what the callback does. Asking is a load. (docs/costs.md has the commands.)
#pragma once
#include <concepts>
#include <stop_token>
#include <type_traits>
#include <utility>

#include "strata/detail/stop_state.hpp"

namespace strata {

using std::nostopstate;
using std::nostopstate_t;

template <class Callback>
class stop_callback;

namespace detail {
struct stop_access;  // for shared_stop
}

/// std::stop_token. Different threads may use different tokens of one source at a time.
class stop_token {
 public:
  /// No stop can be requested.
  stop_token() noexcept = default;

  /// Never blocks.
  void swap(stop_token& other) noexcept { std::swap(state_, other.state_); }
  /// Never blocks. After true, what the requesting thread did before is visible.
  [[nodiscard]] bool stop_requested() const noexcept {
    return state_.get() != nullptr && state_.get()->requested();
  }
  /// False when there is nobody who could request one, and nobody has.
  [[nodiscard]] bool stop_possible() const noexcept {
    return state_.get() != nullptr && state_.get()->possible();
  }
  /// A token of the C++ library on which a stop is requested with this one, for functions that take
  /// one. What hangs on it must not wait. Some 50 ns the first time for each source; throws
  /// std::bad_alloc.
  operator std::stop_token() const {  // NOLINT(google-explicit-constructor): stands in for it
    return state_.get() != nullptr ? state_.get()->standard() : std::stop_token();
  }
  [[nodiscard]] friend bool operator==(const stop_token&, const stop_token&) noexcept = default;
  friend void swap(stop_token& a, stop_token& b) noexcept { a.swap(b); }

 private:
  friend class stop_source;
  template <class Callback>
  friend class stop_callback;
  explicit stop_token(detail::stop_reference state) noexcept : state_(std::move(state)) {}
  detail::stop_reference state_;
};

/// std::stop_source. Different threads may use copies of one source at a time, and request_stop()
/// of the same one.
class stop_source {
 public:
  /// Throws std::bad_alloc.
  stop_source() : state_(detail::stop_state::make()) {}
  /// Without a state: no stop is possible.
  explicit stop_source(nostopstate_t) noexcept {}
  /// One more for the same state.
  stop_source(const stop_source& other) noexcept : state_(other.state_) {
    if (state_.get() != nullptr) state_.get()->add_source();
  }
  stop_source(stop_source&&) noexcept = default;
  /// Gives up its own state.
  stop_source& operator=(stop_source other) noexcept {
    swap(other);
    return *this;
  }
  /// Requests nothing. After the last one no stop is possible any more.
  ~stop_source() {
    if (state_.get() != nullptr) state_.get()->drop_source();
  }

  /// Never blocks, as the next three.
  void swap(stop_source& other) noexcept { std::swap(state_, other.state_); }
  /// A token of the same state; of none if there is none.
  [[nodiscard]] stop_token get_token() const noexcept { return stop_token(state_); }
  /// Whether it has a state.
  [[nodiscard]] bool stop_possible() const noexcept { return state_.get() != nullptr; }
  /// After true, what the requesting thread did before is visible.
  [[nodiscard]] bool stop_requested() const noexcept {
    return state_.get() != nullptr && state_.get()->requested();
  }
  /// Requests a stop, and then calls all callbacks, one after the other in the order in which they
  /// came. True for the first request only; a later one returns at once, although callbacks of the
  /// first may still run. Waits for nothing but what the callbacks wait for. An exception that
  /// leaves one is std::terminate().
  bool request_stop() noexcept { return state_.get() != nullptr && state_.get()->request(); }
  [[nodiscard]] friend bool operator==(const stop_source&, const stop_source&) noexcept = default;
  friend void swap(stop_source& a, stop_source& b) noexcept { a.swap(b); }

 private:
  friend struct detail::stop_access;
  detail::stop_reference state_;
};

/// std::stop_callback: calls a function when a stop is requested, in the thread that requests it,
/// or in its own constructor if that has been before. The function may wait, and may end this very
/// object; it must not throw.
template <class Callback>
class stop_callback : private detail::stop_node {
  static_assert(std::is_invocable_v<Callback> && std::is_destructible_v<Callback>);

 public:
  using callback_type = Callback;

  /// Throws what the function's constructor throws, nothing else.
  template <class C>
  requires std::constructible_from<Callback, C>
  explicit stop_callback(const stop_token& stop,
                         C&& c) noexcept(std::is_nothrow_constructible_v<Callback, C>)
      : stop_callback(detail::stop_reference(stop.state_), std::forward<C>(c)) {}
  template <class C>
  requires std::constructible_from<Callback, C>
  explicit stop_callback(stop_token&& stop,
                         C&& c) noexcept(std::is_nothrow_constructible_v<Callback, C>)
      : stop_callback(std::move(stop.state_), std::forward<C>(c)) {}
  stop_callback(const stop_callback&) = delete;
  stop_callback& operator=(const stop_callback&) = delete;

  /// Afterwards the function is not called any more. Suspends the caller, or blocks an OS thread
  /// outside a runtime, while another thread is in it; what it did is visible then. Called by the
  /// function itself it does not wait.
  ~stop_callback() {
    if (state_.get() != nullptr) state_.get()->remove(*this);
  }

 private:
  template <class C>
  // Takes `state` over where the callback waits for a request, and leaves it alone otherwise.
  stop_callback(detail::stop_reference&& state,
                C&& c) noexcept(std::is_nothrow_constructible_v<Callback, C>)
      : stop_node(&call_this), callback_(std::forward<C>(c)) {
    using outcome = detail::stop_state::outcome;
    const outcome o = state.get() != nullptr ? state.get()->add(*this) : outcome::never;
    if (o == outcome::queued) state_ = std::move(state);
    if (o == outcome::requested) call_this(*this);
  }
  static void call_this(detail::stop_node& n) noexcept {
    std::forward<Callback>(static_cast<stop_callback&>(n).callback_)();
  }

  Callback callback_;
  detail::stop_reference state_;  // null: not queued
};

template <class Callback>
stop_callback(stop_token, Callback) -> stop_callback<Callback>;

namespace detail {

template <class Token>
concept any_stop_token =
    std::is_same_v<Token, stop_token> || std::is_same_v<Token, std::stop_token>;

}  // namespace detail

}  // namespace strata
