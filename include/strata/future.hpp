// SPDX-License-Identifier: Apache-2.0
// The standard's futures for threads of strata/thread.hpp: promise, future, shared_future,
// packaged_task, async. Waiting suspends the thread and not its worker; bringing a result never
// blocks and is allowed from fibers and from threads outside a runtime, which may wait too.
//
//   strata::future<int> sum = strata::async([&] { return add_up(left); });
//   const int right_sum = add_up(right);
//   return sum.get() + right_sum;
//
// Semantics and exceptions (std::future_error) are the standard's. The thread of async() is a
// strata::thread: by default (async | deferred) it is made, and only without memory for it the call
// is put off until somebody waits.
#pragma once
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <system_error>
#include <tuple>
#include <type_traits>
#include <utility>

#include "strata/detail/deadline.hpp"
#include "strata/detail/future_state.hpp"
#include "strata/detail/specifics.hpp"

namespace strata {

using std::future_category;
using std::future_errc;
using std::future_error;
using std::future_status;
using std::launch;

template <class R>
class shared_future;

namespace detail {

// What future and shared_future have in common.
template <class R>
class future_base {
 public:
  /// Whether it has a state. All others throw std::future_error (no_state) without one, and
  /// misuse_error in a fiber if they would have to wait.
  [[nodiscard]] bool valid() const noexcept { return state_ != nullptr; }
  /// Suspends the caller until the result is there; makes the call if it was deferred.
  void wait() const { checked().wait(); }
  /// For that long at most: ready (of async(), once its thread has ended), timeout, or deferred,
  /// which makes no call. Throws std::system_error or std::bad_alloc where there is no thread or
  /// memory for a deadline.
  template <class Rep, class Period>
  future_status wait_for(const std::chrono::duration<Rep, Period>& time) const {
    return checked().wait_until(deadline_after(time));
  }
  /// The same until `time` at the latest.
  template <class Clock, class Duration>
  future_status wait_until(const std::chrono::time_point<Clock, Duration>& time) const {
    future_status s;
    do {
      s = checked().wait_until(deadline_at(time));
    } while (s == future_status::timeout && !has_come(time));
    return s;
  }

 protected:
  using state = result_state<R>;
  future_base() noexcept = default;
  explicit future_base(std::shared_ptr<state> s) noexcept : state_(std::move(s)) {}
  state& checked() const {
    if (state_ == nullptr) refuse_future(future_errc::no_state);
    return *state_;
  }
  std::shared_ptr<state> state_;
};

struct future_maker;

}  // namespace detail

/// std::future.
template <class R>
class future : public detail::future_base<R> {
 public:
  /// Without a state.
  future() noexcept = default;
  future(future&&) noexcept = default;
  /// Gives up its own state first, which waits for the thread of an async() that nobody else
  /// awaits.
  future& operator=(future&& other) noexcept {
    // The old state goes at once, also when the other is us.
    this->state_ = std::exchange(other.state_, nullptr);
    return *this;
  }
  /// Suspends until the result is there, and takes it, or throws what it is; valid() is false
  /// afterwards.
  R get() {
    this->checked().wait();
    const auto s = std::exchange(this->state_, nullptr);
    // Taken out, so that the caller alone decides when the exception ends.
    if (s->error != nullptr) std::rethrow_exception(std::exchange(s->error, nullptr));
    if constexpr (std::is_reference_v<R>) {
      return static_cast<R>(**s->value);
    } else if constexpr (!std::is_void_v<R>) {
      return std::move(*s->value);
    }
  }
  /// Hands the state over; valid() is false afterwards.
  [[nodiscard]] shared_future<R> share() noexcept { return shared_future<R>(std::move(*this)); }

 private:
  friend struct detail::future_maker;
  friend class shared_future<R>;
  explicit future(std::shared_ptr<detail::result_state<R>> s) noexcept
      : detail::future_base<R>(std::move(s)) {}
};

/// std::shared_future.
template <class R>
class shared_future : public detail::future_base<R> {
 public:
  /// Without a state.
  shared_future() noexcept = default;
  /// Takes the state over.
  shared_future(future<R>&& other) noexcept
      : detail::future_base<R>(std::exchange(other.state_, nullptr)) {}
  /// Suspends until the result is there. A reference into the state, which must not be used once
  /// the last shared_future has gone; or throws what it is, each time.
  decltype(auto) get() const {
    this->checked().wait();
    this->state_->rethrow();
    if constexpr (std::is_reference_v<R>) {
      return static_cast<R>(**this->state_->value);
    } else if constexpr (!std::is_void_v<R>) {
      return static_cast<const R&>(*this->state_->value);
    }
  }
};

namespace detail {

struct future_maker {
  template <class R>
  static future<R> make(std::shared_ptr<result_state<R>> s) {
    return future<R>(std::move(s));
  }
};

// What is put there becomes ready when the calling thread has ended; until then the thread keeps
// it. Made before there is something to put, so that whoever has a result finds memory for this.
// Throws std::bad_alloc.
template <class R>
std::shared_ptr<result_state<R>>& ready_at_thread_exit() {
  using kept = std::shared_ptr<result_state<R>>;
  auto keep = std::make_unique<kept>();
  at_thread_exit(
      [](void* argument) noexcept {
        const std::unique_ptr<kept> k(static_cast<kept*>(argument));
        if (*k != nullptr) (*k)->publish();
      },
      keep.get());
  return *keep.release();
}

// What promise and packaged_task have in common: a state that is broken when it goes unsatisfied.
template <class R>
class result_source {
 public:
  /// Once for each state: then std::future_error (future_already_retrieved). Never blocks.
  [[nodiscard]] future<R> get_future() {
    checked().hand_out();
    return future_maker::make(state_);
  }

 protected:
  using state = result_state<R>;
  result_source() noexcept = default;
  explicit result_source(std::shared_ptr<state> s) noexcept : state_(std::move(s)) {}
  result_source(result_source&&) noexcept = default;
  result_source& operator=(result_source&& other) noexcept {
    result_source(std::move(other)).state_.swap(state_);
    return *this;
  }
  ~result_source() {
    if (state_ != nullptr && !state_->is_claimed()) state_->break_promise();
  }
  state& checked() const {
    if (state_ == nullptr) refuse_future(future_errc::no_state);
    return *state_;
  }
  std::shared_ptr<state> state_;
};

}  // namespace detail

/// std::promise.
template <class R>
class promise : public detail::result_source<R> {
  using object = std::conditional_t<std::is_void_v<R>, std::monostate, std::remove_reference_t<R>>;
  static constexpr bool is_object = !std::is_void_v<R> && !std::is_reference_v<R>;

 public:
  /// With a state of its own. Throw std::bad_alloc. A promise that goes unkept breaks it: get()
  /// throws std::future_error (broken_promise).
  promise() : promise(std::allocator_arg, std::allocator<char>()) {}
  template <class Allocator>
  promise(std::allocator_arg_t, const Allocator& a)
      : detail::result_source<R>(std::allocate_shared<detail::result_state<R>>(a)) {}
  /// Exchanges the states.
  void swap(promise& other) noexcept { this->state_.swap(other.state_); }

  /// Makes the result, which whoever waits sees, with all that was done before. Never block. Throw
  /// std::future_error (promise_already_satisfied, no_state), and what copying the value throws.
  void set_value(const object& v) requires(is_object) { publish(v); }
  void set_value(object&& v) requires(is_object) { publish(std::move(v)); }
  void set_value(object& v) requires(std::is_reference_v<R>) { publish(std::addressof(v)); }
  void set_value() requires(std::is_void_v<R>) { publish(); }
  void set_exception(std::exception_ptr e) {
    this->checked().claim();
    this->state_->fail(std::move(e));
  }

  /// The same, but ready when the calling thread has ended. Throw std::bad_alloc, too: then nothing
  /// has been set.
  void set_value_at_thread_exit(const object& v) requires(is_object) { publish_later(v); }
  void set_value_at_thread_exit(object&& v) requires(is_object) { publish_later(std::move(v)); }
  void set_value_at_thread_exit(object& v) requires(std::is_reference_v<R>) {
    publish_later(std::addressof(v));
  }
  void set_value_at_thread_exit() requires(std::is_void_v<R>) { publish_later(); }
  void set_exception_at_thread_exit(std::exception_ptr e) {
    auto& s = this->checked();
    auto& at_end = detail::ready_at_thread_exit<R>();
    s.claim();
    s.error = std::move(e);
    at_end = this->state_;
  }

 private:
  template <class... V>
  void publish(V&&... v) {
    auto& s = this->checked();
    s.claim();
    s.store(std::forward<V>(v)...);
    s.publish();
  }
  template <class... V>
  void publish_later(V&&... v) {
    auto& s = this->checked();
    auto& at_end = detail::ready_at_thread_exit<R>();
    s.claim();
    s.store(std::forward<V>(v)...);
    at_end = this->state_;
  }
};

template <class R>
void swap(promise<R>& a, promise<R>& b) noexcept {
  a.swap(b);
}

namespace detail {

// Of a function object with one operator().
template <class Call>
struct call_signature {};
template <class R, class F, bool N, class... Args>
struct call_signature<R (F::*)(Args...) noexcept(N)> {
  using type = R(Args...);
};
template <class R, class F, bool N, class... Args>
struct call_signature<R (F::*)(Args...)& noexcept(N)> {
  using type = R(Args...);
};
template <class R, class F, bool N, class... Args>
struct call_signature<R (F::*)(Args...) const noexcept(N)> {
  using type = R(Args...);
};
template <class R, class F, bool N, class... Args>
struct call_signature<R (F::*)(Args...) const& noexcept(N)> {
  using type = R(Args...);
};

}  // namespace detail

template <class Signature>
class packaged_task;

/// std::packaged_task.
template <class R, class... Args>
class packaged_task<R(Args...)> : public detail::result_source<R> {
 public:
  /// Without a function.
  packaged_task() noexcept = default;
  /// Keeps f. Throws std::bad_alloc, and what copying or moving f throws.
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, packaged_task>) explicit packaged_task(F&& f)
      : detail::result_source<R>(std::make_shared<detail::result_state<R>>()),
        call_(std::make_unique<call_of<std::decay_t<F>>>(std::forward<F>(f))) {}
  packaged_task(packaged_task&&) noexcept = default;
  packaged_task& operator=(packaged_task&&) noexcept = default;
  /// Exchanges functions and states.
  void swap(packaged_task& other) noexcept {
    this->state_.swap(other.state_);
    call_.swap(other.call_);
  }

  /// Whether it has a function. Those below throw std::future_error (no_state) without one.
  [[nodiscard]] bool valid() const noexcept { return this->state_ != nullptr; }
  /// Calls the function; what it returns or throws goes to the future. Throws std::future_error
  /// (promise_already_satisfied) the second time.
  void operator()(Args... args) {
    this->checked().claim();
    // A waiter may end *this as soon as the result is there.
    const auto s = this->state_;
    s->attempt([&]() -> R { return (*call_)(std::forward<Args>(args)...); });
    s->publish();
  }
  /// The same, but ready when the calling thread has ended. Throws std::bad_alloc, too: then there
  /// was no call.
  void make_ready_at_thread_exit(Args... args) {
    (void)this->checked();
    auto& at_end = detail::ready_at_thread_exit<R>();
    this->checked().claim();
    const auto s = this->state_;
    s->attempt([&]() -> R { return (*call_)(std::forward<Args>(args)...); });
    at_end = s;
  }
  /// A new state for another call; the old one is broken unless it has its result.
  void reset() {
    (void)this->checked();
    packaged_task fresh;
    fresh.state_ = std::make_shared<detail::result_state<R>>();
    this->state_.swap(fresh.state_);
  }

 private:
  struct call {
    virtual ~call() = default;
    virtual R operator()(Args&&... args) = 0;
  };
  template <class F>
  struct call_of : call {
    template <class G>
    explicit call_of(G&& g) : function(std::forward<G>(g)) {}
    R operator()(Args&&... args) override {
      if constexpr (std::is_void_v<R>) {
        std::invoke(function, std::forward<Args>(args)...);
      } else {
        return std::invoke(function, std::forward<Args>(args)...);
      }
    }
    F function;
  };
  std::unique_ptr<call> call_;
};

template <class R, class... Args>
packaged_task(R (*)(Args...)) -> packaged_task<R(Args...)>;
template <class F>
packaged_task(F) -> packaged_task<typename detail::call_signature<decltype(&F::operator())>::type>;

template <class S>
void swap(packaged_task<S>& a, packaged_task<S>& b) noexcept {
  a.swap(b);
}

/// std::async: launch::async calls f in a thread of its own, launch::deferred when somebody waits.
/// The last future of a thread that was made waits for it when it goes.
///
/// Where a call without strata:: finds std::async as well, by an argument of the standard's
/// (launch is one), it means this one, which has constraints.
template <class F, class... Args>
requires std::is_invocable_v<std::decay_t<F>, std::decay_t<Args>...>
[[nodiscard]] auto async(launch how, F&& f, Args&&... args) {
  using result = std::invoke_result_t<std::decay_t<F>, std::decay_t<Args>...>;
  auto call = [function = std::decay_t<F>(std::forward<F>(f)),
               values = std::tuple<std::decay_t<Args>...>(
                   std::forward<Args>(args)...)]() mutable -> result {
    return std::apply(
        [&](auto&... v) -> result { return std::invoke(std::move(function), std::move(v)...); },
        values);
  };
  using kept = decltype(call);
  std::optional<kept> once(std::move(call));
  std::shared_ptr<detail::result_state<result>> state;
  if ((how & launch::async) == launch::async) {
    try {
      state = std::make_shared<detail::async_state<result, kept>>(once);
    } catch (const std::system_error&) {
      if ((how & launch::deferred) != launch::deferred) throw;
    }
  }
  if (state == nullptr)
    state = std::make_shared<detail::deferred_state<result, kept>>(std::move(*once));
  state->hand_out();
  return detail::future_maker::make(std::move(state));
}

template <class F, class... Args>
requires(!std::is_same_v<std::remove_cvref_t<F>, launch>)
    [[nodiscard]] auto async(F&& f, Args&&... args) {
  return strata::async(launch::async | launch::deferred, std::forward<F>(f),
                       std::forward<Args>(args)...);
}

}  // namespace strata

template <class R, class Allocator>
struct std::uses_allocator<strata::promise<R>, Allocator> : std::true_type {};
