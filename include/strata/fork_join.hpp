// SPDX-License-Identifier: Apache-2.0
// Fork-join in plain functions: no coroutines, no coloured functions, no macros.
//
//   long fib(int n) {
//     if (n < 2) return n;
//     auto [a, b] = strata::fork2join([=] { return fib(n - 1); }, [=] { return fib(n - 2); });
//     return a + b;
//   }
//
// Everything here is called from within strata::runtime::run(). A call may continue on another OS
// thread than it began on whenever it waits, so do not keep the address of a thread_local across
// it.
#pragma once
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

#include "strata/detail/cpu.hpp"
#include "strata/detail/join.hpp"
#include "strata/detail/outcome.hpp"
#include "strata/detail/profile.hpp"
#include "strata/detail/worker.hpp"

namespace strata {

namespace detail {

// How a forked branch keeps its function: small plain closures by value, which saves a pointer to
// them; all others by reference. The frame of the fork outlives the branch either way. What a call
// may change is the caller's, who looks at it afterwards.
template <class G>
struct kept_by_value {
  G function;
  explicit kept_by_value(G& g) noexcept : function(g) {}
  G& get() noexcept { return function; }
  const G& get() const noexcept { return function; }
};
template <class G>
struct kept_by_reference {
  G* function;
  explicit kept_by_reference(G& g) noexcept : function(std::addressof(g)) {}
  G& get() const noexcept { return *function; }
};
template <class G>
consteval bool is_kept_by_value() {
  if constexpr (std::is_function_v<G>) {
    return false;
  } else if constexpr (std::is_trivially_copyable_v<G> && std::is_copy_constructible_v<G> &&
                       sizeof(G) <= 16) {
    // Asked last: to answer, the compiler may have to compile the call of a constant one.
    return std::is_invocable_v<const G&>;
  } else {
    return false;
  }
}
template <class G>
using kept = std::conditional_t<is_kept_by_value<G>(), kept_by_value<G>, kept_by_reference<G>>;

// How a branch travels to another node. Nothing does but what strata/call.hpp makes.
template <class G>
struct travel_of {
  static constexpr unsigned mark = 0;  // of what is in the deque for it
  static constexpr const wire_type* wire_of_task = nullptr;
  template <class Result>
  using outcome_of = outcome<Result>;
};

// The branch that may be stolen. It lives in the frame of the fork, which does not end before the
// join.
template <class G>
struct fork_task : task {
  using result = std::invoke_result_t<G&>;

  explicit fork_task(G& g) noexcept : task{&type_of}, function(g) {}

  static void body(task& t) {
    auto& self = static_cast<fork_task&>(t);
    self.out.capture(self.function.get());
    self.join.complete(this_worker());
  }
  static constexpr task_type type_of{&run_on_stack, &body, nullptr, &type_name<G>,
                                     travel_of<G>::wire_of_task};

  kept<G> function;
  join_point join;
  typename travel_of<G>::template outcome_of<result> out;
};

// Where every fork goes that cannot take the fast way: outside the runtime or in a fiber it throws
// misuse_error; with the stack nearly used up it returns true, and the fork goes on on a fresh
// stack; while profiling it returns false, and the fork is measured.
bool fork_needs_stack();
// The same for what may nest without forking, by what is left of the stack alone: a preemptible
// thread, whose forks all go on on another one, is to be interrupted there.
bool call_needs_stack();
// Runs t to its end as the next thing this worker does, on a stack of its own.
void call_on_fresh_stack(task& t, join_point& join);

// What limits a fork is instructions and stores, and every value that the compiler keeps in a
// register across the call of the left branch costs the fork a store and a load. These make it
// derive cheap values again instead, and read the right branch's function where it lies already.
template <class T>
[[gnu::always_inline]] inline void recompute(T& value) noexcept {
  asm("" : "+r"(value));
}
template <unsigned Offset, class T>
[[gnu::always_inline]] inline T* address_of(T& local) noexcept {
#if defined(__x86_64__)
  T* address;
  asm volatile("lea %1, %0"
               : "=r"(address)
               : "m"(reinterpret_cast<char*>(&local)[Offset]), "m"(local));
  return address;
#else
  return reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(&local) + Offset);
#endif
}

template <class G>
[[gnu::always_inline]] inline G& kept_in(fork_task<G>& t) noexcept {
  // As bytes: the function may be const.
  asm("" : "+m"(reinterpret_cast<unsigned char(&)[sizeof t.function]>(t.function)));
  return t.function.get();
}

// What is in the deque for it: its address, marked if it can travel.
template <class G>
[[gnu::always_inline]] inline task* offered(fork_task<G>& t) noexcept {
  // The task is its first part. No cast between class types: marked, it is nobody's address.
  return reinterpret_cast<task*>(address_of<travel_of<G>::mark>(t));
}

// Nothing may outlive the join. When the left branch throws, a right branch that nobody began is
// dropped, as if the calls had been made one after the other; one that runs elsewhere is awaited.
template <class G>
struct join_on_throw {
  fork_task<G>& forked;
  bool left_returned = false;

  [[gnu::always_inline]] ~join_on_throw() {
    if (!left_returned) abandon(forked);
  }
  [[gnu::noinline, gnu::cold]] static void abandon(fork_task<G>& forked) {
    if (this_worker().deque.try_pop(offered(forked))) return;
    forked.join.wait();
    forked.out.drop();
  }
};

template <class F, class G>
[[gnu::always_inline]] inline auto fork_fast(worker& w, F& f, G& g) {
  using left = std::invoke_result_t<F&>;
  using right = std::invoke_result_t<G&>;
  using both = std::pair<regular<left>, regular<right>>;
  fork_task<G> forked(g);
  std::uint64_t number = w.deque.next();
  // Two conditions, or the compiler holds the second for likely.
  if (w.deque.push(number, offered(forked))) [[unlikely]] {
    if (!w.tend()) {
      regular<left> a = invoke_regular(f);
      return both(std::move(a), invoke_regular(kept_in(forked)));
    }
  }
  join_on_throw<G> guard{forked};
  regular<left> a = invoke_regular(f);
  guard.left_returned = true;
  recompute(number);
  // The worker may be another one by now.
  if (!this_worker().deque.try_pop(number, offered(forked))) [[unlikely]] {
    forked.join.wait();
    return both(std::move(a), forked.out.take());
  }
  return both(std::move(a), invoke_regular(kept_in(forked)));
}

template <class F>
struct branch {
  static_assert(std::is_invocable_v<F&>,
                "a branch of fork2join is called, without arguments: give it call<h>(x), or a "
                "lambda, [&] { return h(x); }, and not what h(x) returns");
  using result = std::invoke_result_t<F&>;
};

template <class F, class G>
[[gnu::aligned(64)]] auto fork_any(kept<F> f, kept<G> g);

// f(), on a fresh stack, as a part of the calling task. The caller has a stack.
template <class F>
[[gnu::noinline, gnu::cold]] auto call_with_room(F& f) -> regular<std::invoke_result_t<F&>> {
  stack& calls = calling_stack();
  auto whole = [&] {
    const on_behalf_of it(calls);
    strand there;
    if (!this_worker().profiling) return std::pair(invoke_regular(f), there);
    measured<F> measured_f{std::addressof(f), &there};
    auto result = invoke_regular(measured_f);
    return std::pair(std::move(result), there);
  };
  fork_task<decltype(whole)> fresh(whole);
  call_on_fresh_stack(fresh, fresh.join);
  auto [result, there] = fresh.out.take();
  strands_join(there, strand{});
  return std::move(result);
}

// f(); where the stack is nearly used up, on a fresh one, as a fork would. For what may nest
// without forking.
template <class F>
auto call_where_room_is(F&& f) -> regular<std::invoke_result_t<F&>> {
  if (call_needs_stack()) [[unlikely]]
    return call_with_room(f);
  return invoke_regular(f);
}

template <class F, class G>
[[gnu::noinline, gnu::cold]] auto fork_slow(F& f, G& g)
    -> std::pair<regular<std::invoke_result_t<F&>>, regular<std::invoke_result_t<G&>>> {
  if (fork_needs_stack()) {
    auto call = [&] { return fork_any<F, G>(kept<F>(f), kept<G>(g)); };
    return call_with_room(call);
  }
  strand left, right;
  measured<F> mf{std::addressof(f), &left};
  measured<G> mg{std::addressof(g), &right};
  auto results = fork_fast(this_worker(), mf, mg);
  strands_join(left, right);
  return results;
}

template <class F, class G>
[[gnu::always_inline]] inline auto fork_here(kept<F> f, kept<G> g) {
  worker& w = this_worker();
  if (stack_pointer() <= w.stack_limit) [[unlikely]] {
    // Copies, so that the fast way need not have them in memory.
    kept<F> left(f);
    kept<G> right(g);
    return fork_slow(left.get(), right.get());
  }
  return fork_fast(w, f.get(), g.get());
}

// Not inlined, so that a recursive function that ends before it forks (most calls do) stays a small
// function; and small closures travel in registers. At the beginning of a cache line, because where
// the linker happens to put it makes a difference of a tenth.
template <class F, class G>
[[gnu::noinline, gnu::aligned(64)]] auto fork_any(kept<F> f, kept<G> g) {
  return fork_here<F, G>(f, g);
}

}  // namespace detail

/// Runs f and g, possibly in parallel, and returns both results as a pair once both have ended. A
/// void result becomes std::monostate; if both are void, nothing is returned.
///
/// f and g themselves are called, and need not be copyable, so what a call changes in one of them
/// is there afterwards; copies may be of those of up to 16 bytes that can be called if they are
/// const, as lambdas can that are not mutable.
///
/// The calling task runs f at once; g runs afterwards as a direct call, unless another worker has
/// taken it meanwhile. In the first case the fork costs a few plain loads and stores: no
/// allocation, no locked instruction, no fence. In the second the caller's stack is suspended until
/// g has ended, and its worker does other work.
///
/// Visibility: f and g see everything before the call; the caller sees everything f and g did.
/// Exceptions: f's exception is rethrown after g has ended, and g is dropped if nobody had begun
/// it; otherwise g's exception is rethrown. Throws misuse_error outside a runtime and in a fiber.
/// May suspend. Nesting is bounded by memory only: a fork deep in a stack continues on another one;
/// std::system_error (resource_unavailable_try_again) where all of those are in use.
/// Source: child stealing as in Cilk (doi:10.1145/277650.277725); the deque is described in
/// strata/detail/split_deque.hpp.
template <class F, class G>
[[gnu::always_inline]] inline auto fork2join(F&& f, G&& g) {
  using left = typename detail::branch<F>::result;
  using right = typename detail::branch<G>::result;
  static_assert(!std::is_reference_v<left> && !std::is_reference_v<right>,
                "return a pointer or std::ref instead of a reference");
  if constexpr (std::is_void_v<left> && std::is_void_v<right>) {
    detail::fork_any<std::remove_reference_t<F>, std::remove_reference_t<G>>(
        detail::kept<std::remove_reference_t<F>>(f), detail::kept<std::remove_reference_t<G>>(g));
  } else {
    return detail::fork_any<std::remove_reference_t<F>, std::remove_reference_t<G>>(
        detail::kept<std::remove_reference_t<F>>(f), detail::kept<std::remove_reference_t<G>>(g));
  }
}

/// fork2join compiled into its caller, which saves a call. For a fork in a loop, in a function that
/// seldom ends without forking; elsewhere it makes the function's every call dearer. Otherwise as
/// fork2join.
template <class F, class G>
[[gnu::always_inline]] inline auto fork2join_inline(F&& f, G&& g) {
  using left = typename detail::branch<F>::result;
  using right = typename detail::branch<G>::result;
  static_assert(!std::is_reference_v<left> && !std::is_reference_v<right>,
                "return a pointer or std::ref instead of a reference");
  if constexpr (std::is_void_v<left> && std::is_void_v<right>) {
    detail::fork_here<std::remove_reference_t<F>, std::remove_reference_t<G>>(
        detail::kept<std::remove_reference_t<F>>(f), detail::kept<std::remove_reference_t<G>>(g));
  } else {
    return detail::fork_here<std::remove_reference_t<F>, std::remove_reference_t<G>>(
        detail::kept<std::remove_reference_t<F>>(f), detail::kept<std::remove_reference_t<G>>(g));
  }
}

}  // namespace strata
