// SPDX-License-Identifier: Apache-2.0
// Calls and threads on a node that the program names.
//
//   double near = strata::call<distance>(strata::on_node{2}, a, b);   // made on node 2
//   strata::remote_thread t(3, [](int seed) { search(seed); }, 42);   // on_node{3}
//   t.join();
//
// What a thread throws on its node, join() throws; strata_pthread_exit() and cancellation end it as
// a return does. An error that leaves the scope of further ones waits for them and then goes on, so
// what they were given may be in that scope:
//
//   std::vector<strata::remote_thread> all;
//   for (strata::node_id_t n : strata::members()) all.emplace_back(n, strata::call<search>(seeds));
//   for (strata::remote_thread& t : all) t.join();   // the first error is the one that is seen
//
// A plain number names a node as on_node does: to remote_thread always, to call<f> where f cannot
// be called with it and the other arguments, but with those alone. call<f>(2, a, b) is on node 2
// for the above `double distance(point, point)`; with `double sum(int, point, point)`, or a lambda
// that takes anything, it is a call with three arguments that has not been made (strata/call.hpp).
//
// What travels is the function's identity and its arguments, so the function is known at compile
// time (a function, or a lambda that captures nothing). Arguments and results are trivially
// copyable, or, with strata/serialize.hpp, whatever cereal serialises: strings, containers, types
// with a function serialize().
//
//   std::vector<hit> search(const std::string& query, int k);
//   auto hits = strata::call<search>(strata::on_node{3}, std::string("ACGT"), 10);
//
// They may be of any size. Up to 16 KiB travel with the call and with its answer; more goes as a
// large message does (strata/message.hpp), and the call begins when its arguments are there. The
// calling node keeps a copy of them as bytes until they have gone. Addresses (pointers, std::span
// and the like) do not compile: send a global_ptr, or a copy.
// Where it does not matter which node makes a call, leave that to the runtime: strata/call.hpp.
// Visibility: the function sees what was done before the call, and who has its result, or has
// joined, what it did; between nodes that is arguments and results (docs/memory-model.md).
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "strata/call.hpp"
#include "strata/detail/deadline.hpp"
#include "strata/detail/object_call.hpp"
#include "strata/detail/thread_core.hpp"
#include "strata/detail/thread_exit.hpp"
#include "strata/error.hpp"
#include "strata/membership.hpp"
#include "strata/semaphore.hpp"

namespace strata {

namespace detail {
template <class>
inline constexpr bool always_false = false;

// Function objects that are more than their type: a lambda that captures something.
template <class F>
inline constexpr bool has_state =
    std::is_class_v<F> && !(std::is_empty_v<F> && std::is_default_constructible_v<F>);
template <auto Function, class... Arguments>
inline constexpr bool has_state<travelling_call<Function, Arguments...>> = false;

// A call on another node, for as long as it is awaited; object_call is the other kind.
template <class Call>
struct remote_call {
  explicit remote_call(const Call& c) : call(c), there(call) {}
  void begin(node_id_t node) { call_on(node, there); }
  [[nodiscard]] bool has_ended() const noexcept { return there.join.done(); }
  // As join_point::wait().
  void await() { there.join.wait(); }
  auto take() {
    await();
    if constexpr (std::is_void_v<typename Call::result>) {
      (void)there.out.take();
    } else {
      return there.out.take();
    }
  }
  Call call;
  fork_task<Call> there;
};

// Calls f for a thread, which pthread_exit() or its cancellation ends as a return does.
template <class F>
void call_until_exit(F& f) {
  try {
    (void)f();
  } catch (const thread_exit&) {
  }
}
// Whether it says that another node's thread has ended so, and not a call that it has made.
[[nodiscard]] bool is_exit(const remote_error& e) noexcept;

// Exists until await() has returned: the other node answers into it, or the thread writes there.
struct remote_thread_state {
  virtual ~remote_thread_state() = default;
  // Suspends until the call has ended. Throws where it cannot wait for that; nothing has changed.
  virtual void await() = 0;
  // The same, for so long at most: whether it has.
  virtual bool await_until(std::int64_t deadline_ns) = 0;
  // After that, once: rethrows.
  virtual void take() = 0;
};

// On the calling node.
template <class Call>
struct thread_here final : remote_thread_state {
  explicit thread_here(const Call& c) : call(c) {
    here = thread([this] {
      auto f = [this] { call_until_exit(call); };
      result.capture(f);
      ended.release(1);
    });
  }
  void await() override { here.join(); }
  bool await_until(std::int64_t deadline_ns) override {
    if (ended.acquire(deadline_ns) != unparked::woken) return false;
    ended.release(1);  // for whoever asks again
    return true;
  }
  void take() override { result.take(); }
  Call call;
  thread here;
  outcome<void> result;
  semaphore_core ended{0};
};

// On another one. Made: remote_call or object_call.
template <class Made>
struct thread_away final : remote_thread_state {
  template <class Call>
  thread_away(node_id_t node, const Call& c) : made(c) {
    made.begin(node);
  }
  void await() override {
    if (watcher.joinable()) watcher.join();
    made.await();
  }
  // An answer is awaited by one stack, and without a limit: by that of a thread, which others may
  // leave behind.
  bool await_until(std::int64_t deadline_ns) override {
    if (made.has_ended()) return true;
    require_stack();
    if (!watcher.joinable()) {
      watcher = thread([this] {
        made.await();
        ended.release(1);
      });
    }
    return ended.acquire(deadline_ns) == unparked::woken;
  }
  void take() override {
    try {
      (void)made.take();
    } catch (const remote_error& e) {
      if (!is_exit(e)) throw;
    }
  }
  Made made;
  thread watcher;
  semaphore_core ended{0};
};

template <class Call>
std::unique_ptr<remote_thread_state> thread_on(on_node where, const Call& c) {
  if (where.number == node_id()) return std::make_unique<thread_here<Call>>(c);
  if constexpr (Call::carries_objects) {
    // What it returns is dropped, so it need not come here.
    return std::make_unique<thread_away<object_call<Call, false>>>(where.number, c);
  } else {
    return std::make_unique<thread_away<remote_call<Call>>>(where.number, c);
  }
}

}  // namespace detail

/// f(arguments...) on that node: `auto r = call<f>(on_node{2}, x, y)`, or call<f>(2, x, y) where f
/// cannot be called with (2, x, y), but with (x, y). Suspends the caller until the result is back.
/// On the caller's own node it is a plain call. Rethrows: what f threw, as remote_error if it was
/// on another node. Throws misuse_error for a node that does not exist, outside a runtime, and, for
/// another node, in a fiber; node_lost_error when it is lost, node_left_error when it has left; for
/// objects what makes bytes of the arguments throws, and serialization_error if the result cannot
/// be made of its bytes (if the arguments cannot, it comes as remote_error).
template <auto Function, class... Arguments>
requires(std::is_invocable_v<decltype(Function), const Arguments&...>) auto call(
    on_node where, const Arguments&... arguments) {
  using made = travelling_call<Function, Arguments...>;
  if constexpr (made::carries_objects) {
    // Nothing is copied.
    if (where.number == node_id()) return Function(arguments...);
    detail::require_stack();
    detail::object_call<made, true> away(arguments...);
    away.begin(where.number);
    return away.take();
  } else {
    const made c(arguments...);
    if (where.number == node_id()) return c();
    detail::require_stack();
    detail::remote_call<made> away(c);
    away.begin(where.number);
    return away.take();
  }
}

/// A thread on a node of the program's choice.
class remote_thread {
 public:
  /// None.
  remote_thread() noexcept = default;
  /// Begins a call there; what it returns is dropped. Does not wait for the call; to another node
  /// the calling worker waits while too much is queued for it (1 MiB). Throws misuse_error for a
  /// node that does not exist, and outside a runtime; node_lost_error; on the own node
  /// std::system_error as thread's; for objects what makes bytes of the arguments throws.
  template <auto Function, class... Arguments>
  remote_thread(on_node where, const travelling_call<Function, Arguments...>& c)
      : state_(detail::thread_on(where, c)) {}
  /// The same for a lambda that captures nothing, or another function object without state.
  template <class F, class... Arguments>
  requires(std::is_empty_v<F>&& std::is_default_constructible_v<F>)
      remote_thread(on_node where, F, const Arguments&... arguments)
      : remote_thread(where, travelling_call<F{}, Arguments...>(arguments...)) {}
  /// Does not compile: where a function is differs from node to node.
  template <class Result, class... Parameters, class... Arguments>
  remote_thread(on_node, Result (*)(Parameters...), const Arguments&...) {
    static_assert(detail::always_false<Result>,
                  "a function's address means nothing on another node; name the function when the "
                  "program is compiled: remote_thread(node, call<f>(arguments...)), or a lambda "
                  "that captures nothing");
  }
  /// Does not compile: what it holds may be of this node, and only arguments are looked at.
  template <class F, class... Arguments>
  requires(detail::has_state<F>) remote_thread(on_node, F, const Arguments&...) {
    static_assert(detail::always_false<F>,
                  "a lambda that captures something, or another function object with a state, does "
                  "not travel to another node; capture nothing and pass what it needs as "
                  "arguments: remote_thread(node, [](int n) { search(n); }, n)");
  }
  remote_thread(remote_thread&&) noexcept = default;
  /// What *this was before ends as in the destructor.
  remote_thread& operator=(remote_thread&& other) noexcept {
    if (this == &other) return *this;
    const remote_thread before(std::move(*this));
    state_ = std::move(other.state_);
    return *this;
  }
  /// If joinable(): waits for it, as std::jthread does and join(). What it threw, and that nobody
  /// can wait here (in a fiber), is dropped where another exception is on its way past *this, and a
  /// thread that is not awaited goes on as after detach(); else it ends the program, with its
  /// message, by std::terminate(): nobody could catch it here.
  ~remote_thread() {
    if (!joinable()) return;
    try {
      join();
    } catch (...) {
      if (std::uncaught_exceptions() == 0) std::terminate();
      if (joinable()) leave();
    }
  }

  /// Whether it has a thread that nobody has joined or detached.
  [[nodiscard]] bool joinable() const noexcept { return state_ != nullptr; }
  /// Suspends the caller until it has ended; what it did on its node is done. Rethrows what it
  /// threw, as remote_error if it was on another node. Throws misuse_error if not joinable(),
  /// node_lost_error; and misuse_error, with *this joinable as before, where it has not ended and
  /// nobody can wait for it: in a fiber, in the function of per_worker::use(), and, for one on
  /// another node, outside a runtime.
  void join() {
    if (!joinable()) throw misuse_error("join() for a remote_thread that is not joinable()");
    state_->await();
    const auto state = std::move(state_);
    state->take();
  }
  /// Suspends the caller until it has ended, for that long at most: whether it has. If so, what it
  /// did on its node is done, and join() says what it threw; if not, it goes on, and *this is as
  /// before. Of one on another node the first call that has to wait begins a thread of this node,
  /// which is there until the other one has ended. Throws misuse_error as join(),
  /// std::system_error as thread's constructor, and that or std::bad_alloc where there is no thread
  /// or memory for a deadline.
  template <class Rep, class Period>
  [[nodiscard]] bool wait_for(const std::chrono::duration<Rep, Period>& time) {
    return has_ended_by(detail::deadline_after(time));
  }
  /// The same until `time` at the latest.
  template <class Clock, class Duration>
  [[nodiscard]] bool wait_until(const std::chrono::time_point<Clock, Duration>& time) {
    return detail::attempt_until(time, [this](std::int64_t ns) { return has_ended_by(ns); });
  }
  /// Nobody waits for it any more; what it throws is dropped. Throws misuse_error if not
  /// joinable(), and what `thread` throws, with *this joinable as before.
  void detach() {
    if (!joinable()) throw misuse_error("detach() for a remote_thread that is not joinable()");
    // Until there is a thread that owns it, *this does: the other node answers into it.
    detail::remote_thread_state* const state = state_.get();
    thread waiter([state] {
      const std::unique_ptr<detail::remote_thread_state> owned(state);
      try {
        owned->await();
        owned->take();
      } catch (...) {  // nobody waits for it
      }
    });
    (void)state_.release();
    waiter.detach();
  }

 private:
  bool has_ended_by(std::int64_t deadline_ns) {
    if (!joinable()) throw misuse_error("a timed wait for a remote_thread that is not joinable()");
    return state_->await_until(deadline_ns);
  }
  // For who cannot wait.
  void leave() noexcept {
    try {
      detach();
    } catch (...) {  // no thread to own it: it stays for as long as the process
      (void)state_.release();
    }
  }

  std::unique_ptr<detail::remote_thread_state> state_;
};

/// Calls f(arguments...) on every member of the job (strata/membership.hpp) at once, as a thread
/// each, and waits for all of them. Rethrows the first error; where the call cannot begin on one
/// node, as on one that leaves meanwhile (node_left_error), the others get it all the same. f: as
/// for remote_thread. Throws misuse_error, and has called nothing, in a fiber and outside a
/// runtime.
template <class F, class... Arguments>
void on_every_node(F f, const Arguments&... arguments) {
  detail::require_stack();
  const std::vector<node_id_t> all = members();
  std::vector<remote_thread> threads;
  threads.reserve(all.size());
  std::exception_ptr first;
  for (const node_id_t n : all) {
    try {
      threads.emplace_back(on_node{n}, f, arguments...);
    } catch (...) {
      if (first == nullptr) first = std::current_exception();
    }
  }
  for (remote_thread& t : threads) {
    try {
      t.join();
    } catch (...) {
      if (first == nullptr) first = std::current_exception();
    }
  }
  if (first != nullptr) std::rethrow_exception(first);
}

}  // namespace strata
