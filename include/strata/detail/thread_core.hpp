// SPDX-License-Identifier: Apache-2.0
// thread and this_thread: what the locks and everything else of strata/thread.hpp are built on.
#pragma once
#include <chrono>
#include <compare>
#include <functional>
#include <memory>
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

struct thread_ids;  // makes them
// Suspends the caller until that time on the monotonic clock, at the earliest.
void sleep_until_ns(std::int64_t deadline_ns);

// Of the memory in which a thread's function and arguments lie.
inline constexpr std::size_t thread_alignment = 16;

// Function: the program's, by which the thread is called where it has no name.
template <class Call, class Function>
struct thread_call : thread_block {
  // What make() returns is made here: a copy that was just put together somewhere else would have
  // to be waited for before it could be moved on as a whole.
  template <class Make>
  thread_call(std::in_place_t, Make& make)
      : thread_block(type_of, sizeof(thread_call)), call(make()) {
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
    friend struct detail::thread_ids;
    explicit id(const void* what) noexcept : what_(what) {}
    const void* what_ = nullptr;
  };
  using native_handle_type = detail::thread_block*;

  thread() noexcept = default;
  /// Begins f(args...), copied or moved into the thread, which destroys them at its end, in the
  /// caller's runtime. Outside any, in one that the process has for such threads: see thread.hpp.
  /// Throws std::system_error (resource_unavailable_try_again) where there are as many threads as
  /// stacks (outside, of smaller ones as well), or no memory for one more, and, outside, no OS
  /// threads for workers. About 20 ns; from outside some 100 ns and waking a worker.
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
  /// `other` is not joinable afterwards.
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

  /// Exchanges the threads.
  void swap(thread& other) noexcept { std::swap(block_, other.block_); }
  /// Whether it has a thread, which may have ended.
  [[nodiscard]] bool joinable() const noexcept { return block_ != nullptr; }
  /// Suspends the caller until the thread has ended; what it did is visible then. Throws
  /// std::system_error: invalid_argument if not joinable, resource_deadlock_would_occur for the
  /// calling thread itself and for one that joins it already.
  void join();
  /// Nobody joins it any more. Never blocks. Throws std::system_error (invalid_argument) if not
  /// joinable.
  void detach();
  /// That of no thread if not joinable.
  [[nodiscard]] id get_id() const noexcept { return id(block_); }
  /// For the runtime and debuggers; null if not joinable.
  [[nodiscard]] native_handle_type native_handle() const noexcept { return block_; }
  /// Workers of the calling task's runtime; outside, of the machine.
  [[nodiscard]] static unsigned hardware_concurrency() noexcept;

 private:
  friend class jthread;
  template <class F, class... Args>
  static detail::thread_block* begin(const thread_attributes* a, F&& f, Args&&... args) {
    auto make = [&] {
      return [function = std::decay_t<F>(std::forward<F>(f)),
              values = std::tuple<std::decay_t<Args>...>(std::forward<Args>(args)...)]() mutable {
        std::apply([&](auto&... v) { std::invoke(std::move(function), std::move(v)...); }, values);
      };
    };
    using whole = decltype(make());
    if constexpr (alignof(whole) > detail::thread_alignment) {
      auto make_apart = [kept = std::unique_ptr<whole>(new whole(make()))]() mutable {
        return [kept = std::move(kept)] { (*kept)(); };
      };
      return begin_call<std::decay_t<F>>(a, make_apart);
    } else if constexpr (std::is_trivially_copy_constructible_v<whole> &&
                         std::is_trivially_move_constructible_v<whole>) {
      return begin_call<std::decay_t<F>>(a, make);
    } else {
      whole made = make();
      auto move = [&] { return std::move(made); };
      return begin_call<std::decay_t<F>>(a, move);
    }
  }
  // Function: the program's, for its name. make() returns what the thread calls, and runs nothing
  // of the program but a move.
  template <class Function, class Make>
  static detail::thread_block* begin_call(const thread_attributes* a, Make& make) {
    const detail::uninterrupted guard;
    using block = detail::thread_call<decltype(make()), Function>;
    static_assert(alignof(block) <= detail::thread_alignment);
    detail::worker& w = detail::this_worker();
    if (w.owner == nullptr) [[unlikely]]
      return begin_from_outside<Function>(a, make());
    void* memory = nullptr;
    block* b = nullptr;
    try {
      memory = w.frames.allocate(sizeof(block));
      b = ::new (memory) block(std::in_place, make);
    } catch (...) {
      if (memory == nullptr) detail::refuse_for_memory();
      detail::this_worker().frames.deallocate(memory, sizeof(block));
      throw;
    }
    try {
      if (a != nullptr) detail::set_attributes(*b, *a);
      detail::start_thread(*b);
    } catch (...) {
      detail::drop_thread(*b);
      throw;
    }
    return b;
  }
  // The caller has made the call, as std::thread's does.
  template <class Function, class Call>
  static detail::thread_block* begin_from_outside(const thread_attributes* a, Call call) {
    struct request {
      const thread_attributes* a;
      Call& call;
      detail::thread_block* made;
    } r{a, call, nullptr};
    detail::call_in_process_runtime(
        [](void* asked) {
          auto& it = *static_cast<request*>(asked);
          auto move = [&] { return std::move(it.call); };
          it.made = begin_call<Function>(it.a, move);
        },
        &r);
    return r.made;
  }

  detail::thread_block* block_ = nullptr;
};

inline void swap(thread& a, thread& b) noexcept { a.swap(b); }

namespace this_thread {

/// Lets others run that are ready; returns at once if there are none, and in a fiber. Outside a
/// runtime other OS threads. About 10 ns.
void yield() noexcept;
/// The calling thread's or task's.
[[nodiscard]] thread::id get_id() noexcept;

/// Suspends the caller at least that long. Throws misuse_error in a fiber, unless the time is over,
/// and std::system_error or std::bad_alloc where there is no thread or memory for a deadline.
template <class Rep, class Period>
void sleep_for(const std::chrono::duration<Rep, Period>& time) {
  detail::sleep_until_ns(detail::deadline_after(time));
}
/// Suspends the caller until `time` at the earliest. Throws as sleep_for().
template <class Clock, class Duration>
void sleep_until(const std::chrono::time_point<Clock, Duration>& time) {
  while (!detail::has_come(time)) detail::sleep_until_ns(detail::deadline_at(time));
}

}  // namespace this_thread

}  // namespace strata

template <>
struct std::hash<strata::thread::id> {
  std::size_t operator()(strata::thread::id i) const noexcept {
    return std::hash<const void*>()(i.what_);
  }
};
