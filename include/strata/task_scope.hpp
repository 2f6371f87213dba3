// SPDX-License-Identifier: Apache-2.0
// Spawning any number of tasks and waiting for all of them.
//
//   strata::task_scope scope;
//   for (node* child : children) scope.spawn([child] { visit(child); });
//   scope.sync();
//
// Children that are calls (strata/call.hpp) may be made on another node:
//
//   for (int i = 0; i < 100; ++i) scope.spawn(strata::call<simulate>(i));
#pragma once
#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <stop_token>
#include <type_traits>
#include <utility>

#include "strata/detail/join.hpp"
#include "strata/detail/outcome.hpp"
#include "strata/detail/profile.hpp"
#include "strata/detail/worker.hpp"
#include "strata/error.hpp"
#include "strata/fork_join.hpp"
#include "strata/stop_token.hpp"

namespace strata {

class task_scope;

namespace detail {

// Which task has made a scope, for builds with STRATA_DEBUG_CHECKS; see detail/use_check.hpp.
#if defined(STRATA_DEBUG_CHECKS)
class scope_maker {
 public:
  scope_maker() noexcept;
  // Throws misuse_error when another task calls.
  void check() const;
  // Whether a child runs on the maker's stack.
  void lend(bool to_child) noexcept { is_lent_ = to_child; }

 private:
  const stack* who_;      // null: none that could have children
  bool is_lent_ = false;  // read by that task alone
};
#else
class scope_maker {
 public:
  void check() const noexcept {}
  void lend(bool) noexcept {}
};
#endif

}  // namespace detail

/// The result of a spawned task; read it after sync(). It may outlive the scope, and need not be
/// kept: what nobody reads ends at sync(). Only the task that made the scope uses it.
template <class T>
class spawned {
 public:
  spawned(spawned&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
  spawned& operator=(spawned&& other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  /// Never waits for the task.
  ~spawned();

  /// The value, moved out. Never blocks. Throws misuse_error before the scope's sync(), when the
  /// task was cancelled or has thrown, the second time, and where it has been moved from.
  T get();

 private:
  friend class task_scope;
  struct block;
  explicit spawned(block* b) noexcept : block_(b) {}
  block* block_;
};

/// A group of child tasks. It belongs to the task that made it: only that task calls its functions,
/// not a child or a branch of it, which may run at the same time: they have scopes of their own.
/// Builds with STRATA_DEBUG_CHECKS (Debug and sanitizer builds) throw misuse_error where spawn() or
/// sync() sees another one; a branch of a fork that runs on its maker's stack goes unnoticed.
class task_scope {
 public:
  task_scope() noexcept = default;
  /// Children that have not begun when a stop is requested are skipped. sync() then returns as
  /// usual; ask the token.
  explicit task_scope(stop_token stop) noexcept : stop_(std::move(stop)) {}
  explicit task_scope(std::stop_token stop) noexcept : standard_stop_(std::move(stop)) {}
  task_scope(const task_scope&) = delete;
  task_scope& operator=(const task_scope&) = delete;

  /// Waits for the children. An exception of a child that sync() has not rethrown ends the program,
  /// unless the scope is left by another exception.
  ~task_scope();

  /// Makes f a child task: it runs during sync() on this stack, or before that on another worker. f
  /// is moved into a block of the worker's pool: no lock, no fence. If f returns a
  /// value, spawn returns a handle for it, else nothing; the result has a block of its own, by new,
  /// until it has been read, or sync() has returned and the handle has ended.
  /// f sees everything before the call. Never blocks. Throws misuse_error outside a runtime and in
  /// a fiber, std::bad_alloc, and what moving or copying f throws; nothing has been spawned then.
  /// f's exception is kept for sync().
  ///
  /// As call<f>(arguments...) the child may run on another node: what f throws there is kept as a
  /// remote_error, and a node that is lost with it as node_lost_error. Its block, about 100 bytes
  /// more than its arguments and its result, stays until sync(). A stop does not reach it where it
  /// has left. (With --strata-profile it stays.)
  template <class F>
  auto spawn(F&& f);

  /// Runs and awaits all children spawned so far; may suspend. The caller then sees everything they
  /// did. Rethrows the first exception of a child, after all of them have ended; those of calls
  /// count from when sync() has heard of them. The scope can be used again.
  void sync();

 private:
  template <class T>
  friend class spawned;
  struct child;
  template <class F>
  struct plain_child;
  template <class Call>
  struct call_child;
  struct call_link;
  struct kept_result;

  // A child of this type, in a block of the pool.
  template <class Child, class... Arguments>
  void add_child(Arguments&&... arguments);
  template <class Call, class F>
  auto spawn_call(F&& f);
  void add(child& c);
  void add(call_link& c);
  template <class Run>
  void run_measured(Run&& run) noexcept;
  void run_child(child& c) noexcept;
  void run_call(call_link& c) noexcept;
  void finish_children() noexcept;
  void hand_over_results() noexcept;
  void finished_elsewhere(detail::worker& w) noexcept;
  void keep(std::exception_ptr e) noexcept;
  static void run_elsewhere(detail::task& t);
  static bool commit(detail::stack& s, void* self);

  [[nodiscard]] bool stop_requested() const noexcept {
    return stop_.stop_requested() || standard_stop_.stop_requested();
  }

  stop_token stop_;  // of these one at most is of a source
  std::stop_token standard_stop_;
  std::uint64_t spawned_ = 0;  // since the last sync
  std::uint64_t ran_here_ = 0;
  call_link* calls_ = nullptr;      // since the last sync, newest first
  kept_result* results_ = nullptr;  // the same
  int unwinding_ = std::uncaught_exceptions();
  detail::scope_maker maker_;

  // Children that ran elsewhere count down from 0; sync() adds their number. Whoever brings it to 0
  // after that is the last.
  std::atomic<std::int64_t> balance_{0};
  detail::stack* waiter_ = nullptr;
  std::atomic<bool> threw_{false};
  std::exception_ptr exception_;

  // Profiling.
  std::atomic<std::uint64_t> children_work_{0};
  std::atomic<std::uint64_t> children_span_{0};
};

// ---- implementation ----

struct task_scope::child : detail::task {
  task_scope* scope;
  // Calls the function, or skips it, and frees the block. Must not throw.
  void (*finish)(child& c, detail::worker& w, bool skip) noexcept;
};

// A child that is a call. Made by another worker or node it completes a join of its own, so that
// nobody but the waiter needs to know who made it.
struct task_scope::call_link {
  task_scope* scope;
  call_link* next;
  detail::task* offered;  // what is in the deque for it
  // Makes the call, or skips it.
  void (*make)(call_link& c, bool skip) noexcept;
  // Hands on what has come of it, once somebody elsewhere has made it unless it was made here, and
  // frees the block.
  void (*end)(call_link& c, bool made_here) noexcept;
};

// Heads a block that outlives its task because it holds the result. It is the scope's, whose child
// writes to it, until the next sync, and then the handle's; where that is gone it ends.
struct task_scope::kept_result {
  kept_result* next;
  void (*destroy)(kept_result* r) noexcept;
  bool has_ended = false;  // the child
  bool has_handle = true;
};

template <class F>
struct task_scope::plain_child : child {
  explicit plain_child(task_scope& s, F&& f) : function(std::move(f)) { init(s); }
  explicit plain_child(task_scope& s, const F& f) : function(f) { init(s); }

  void init(task_scope& s) noexcept {
    type = &type_of;
    scope = &s;
    finish = &finish_this;
  }
  static void finish_this(child& c, detail::worker&, bool skip) noexcept {
    auto& self = static_cast<plain_child&>(c);
    if (!skip) {
      try {
        self.function();
      } catch (...) {
        self.scope->keep(std::current_exception());
      }
    }
    std::destroy_at(&self);
    // The function may have suspended: the worker is looked up again.
    detail::this_worker().frames.deallocate(&c, sizeof(plain_child));
  }
  static constexpr detail::task_type type_of{&detail::run_on_stack, &run_elsewhere, nullptr,
                                             &detail::type_name<F>};
  F function;
};

template <class T>
struct spawned<T>::block : task_scope::kept_result {
  detail::outcome<T> out;
  bool has_value = false;

  static spawned in(task_scope& s) {
    auto* const b = new block{{s.results_, &destroy_this}, {}};
    s.results_ = b;
    return spawned(b);
  }
  ~block() {
    if (has_value) out.drop();
  }
  // Rethrows what f throws.
  template <class F>
  void fill(F& f) {
    out.capture(f);
    if (out.threw()) out.take();
    has_value = true;
  }
  static void destroy_this(task_scope::kept_result* r) noexcept { delete static_cast<block*>(r); }
};

template <class T>
spawned<T>::~spawned() {
  if (block_ == nullptr) return;
  if (block_->has_ended)
    delete block_;
  else
    block_->has_handle = false;
}

template <class T>
T spawned<T>::get() {
  if (block_ == nullptr || !block_->has_ended || !block_->has_value)
    throw misuse_error("spawned::get() before sync(), twice, or of a cancelled task");
  const std::unique_ptr<block> read(std::exchange(block_, nullptr));
  read->has_value = false;
  return read->out.take();
}

namespace detail {
// A base, so that it is there before the task that refers to it.
template <class Call>
struct held_call {
  Call held;
};
}  // namespace detail

template <class Call>
struct task_scope::call_child : detail::held_call<Call>, call_link, detail::fork_task<Call> {
  using task_of_call = detail::fork_task<Call>;
  using result = typename task_of_call::result;
  static constexpr bool has_result = !std::is_void_v<result>;
  using block = typename spawned<detail::regular<result>>::block;

  template <class F>
  call_child(task_scope& s, block* b, F&& f)
      : detail::held_call<Call>{std::forward<F>(f)},
        call_link{&s, nullptr, nullptr, &make_this, &end_this},
        task_of_call(this->held),
        into(b) {
    this->type = &kind;
    this->offered = detail::this_worker().profiling ? static_cast<detail::task*>(this)
                                                    : detail::offered<Call>(*this);
  }

  static void make_this(call_link& c, bool skip) noexcept {
    auto& self = static_cast<call_child&>(c);
    self.is_skipped = skip;
    if (!skip) self.out.capture(self.function.get());
  }
  static void body(detail::task& t) {
    auto& self = static_cast<call_child&>(static_cast<task_of_call&>(t));
    self.scope->run_call(self);
    self.join.complete(detail::this_worker());
  }
  static void end_this(call_link& c, bool made_here) noexcept {
    auto& self = static_cast<call_child&>(c);
    if (!made_here) self.join.wait();
    if (!self.is_skipped) {
      try {
        auto take = [&] { return self.out.take(); };
        if constexpr (has_result)
          self.into->fill(take);
        else
          take();
      } catch (...) {
        self.scope->keep(std::current_exception());
      }
    }
    std::destroy_at(&self);
    detail::this_worker().frames.deallocate(&self, sizeof(call_child));
  }
  static constexpr detail::task_type kind{&detail::run_on_stack, &body, nullptr,
                                          &detail::type_name<Call>,
                                          detail::travel_of<Call>::wire_of_task};
  block* into;
  bool is_skipped = false;
};

template <class Child, class... Arguments>
void task_scope::add_child(Arguments&&... arguments) {
  static_assert(alignof(Child) <= 16, "blocks of the pool are aligned to 16 bytes");
  detail::require_stack();
  void* const block = detail::this_worker().frames.allocate(sizeof(Child));
  Child* c = nullptr;
  try {
    c = ::new (block) Child(*this, std::forward<Arguments>(arguments)...);
    add(*c);
  } catch (...) {
    if (c != nullptr) std::destroy_at(c);  // there is no memory for its place in the queue
    detail::this_worker().frames.deallocate(block, sizeof(Child));
    throw;
  }
}

template <class Call, class F>
auto task_scope::spawn_call(F&& f) {
  using child_of = call_child<Call>;
  if constexpr (child_of::has_result) {
    auto handle = child_of::block::in(*this);
    add_child<child_of>(handle.block_, std::forward<F>(f));
    return handle;
  } else {
    add_child<child_of>(nullptr, std::forward<F>(f));
  }
}

template <class F>
auto task_scope::spawn(F&& f) {
  using function = std::decay_t<F>;
  using result = std::invoke_result_t<function&>;
  maker_.check();
  if constexpr (detail::travel_of<function>::wire_of_task != nullptr) {
    return spawn_call<function>(std::forward<F>(f));
  } else if constexpr (std::is_void_v<result>) {
    add_child<plain_child<function>>(std::forward<F>(f));
  } else {
    auto handle = spawned<result>::block::in(*this);
    spawn([b = handle.block_, call = std::forward<F>(f)]() mutable { b->fill(call); });
    return handle;
  }
}

}  // namespace strata
