// SPDX-License-Identifier: Apache-2.0
// Spawning any number of tasks and waiting for all of them.
//
//   strata::task_scope scope;
//   for (node* child : children) scope.spawn([child] { visit(child); });
//   scope.sync();
#pragma once
#include <atomic>
#include <cstdint>
#include <exception>
#include <new>
#include <stop_token>
#include <type_traits>
#include <utility>

#include "strata/detail/join.hpp"
#include "strata/detail/outcome.hpp"
#include "strata/detail/profile.hpp"
#include "strata/detail/worker.hpp"
#include "strata/error.hpp"

namespace strata {

class task_scope;

/// The result of a spawned task. Valid until its scope ends; read it after sync().
template <class T>
class spawned {
 public:
  /// The value. Throws misuse_error before the scope's sync(), when the task was cancelled, or the
  /// second time.
  T get();

 private:
  friend class task_scope;
  struct block;
  explicit spawned(block* b) noexcept : block_(b) {}
  block* block_;
};

/// A group of child tasks. It belongs to the task that made it: only that task calls its functions
/// (children have scopes of their own).
class task_scope {
 public:
  task_scope() noexcept = default;
  /// Children that have not begun when a stop is requested are skipped. sync() then returns as
  /// usual; ask the token.
  explicit task_scope(std::stop_token stop) noexcept : stop_(std::move(stop)) {}
  task_scope(const task_scope&) = delete;
  task_scope& operator=(const task_scope&) = delete;

  /// Waits for the children. An exception of a child that sync() has not rethrown ends the program,
  /// unless the scope is left by another exception.
  ~task_scope();

  /// Makes f a child task: it runs during sync() on this stack, or before that on another worker. f
  /// is moved into a block of the worker's pool; about 5 ns, no lock, no fence. If f returns a
  /// value, spawn returns a handle for it, else nothing. f sees everything before the call. Throws
  /// misuse_error outside a runtime and in a fiber; f's exception is kept for sync().
  template <class F>
  auto spawn(F&& f);

  /// Runs and awaits all children spawned so far; may suspend. The caller then sees everything they
  /// did. Rethrows the first exception of a child, after all of them have ended. The scope can be
  /// used again.
  void sync();

 private:
  template <class T>
  friend class spawned;
  struct child;
  template <class F>
  struct plain_child;
  struct keeper;

  void add(child& c);
  void run_child(child& c) noexcept;
  void finish_children() noexcept;
  void finished_elsewhere(detail::worker& w) noexcept;
  void keep(std::exception_ptr e) noexcept;
  static void run_elsewhere(detail::task& t);
  static bool commit(detail::stack& s, void* self);

  std::stop_token stop_;
  std::uint64_t spawned_ = 0;  // since the last sync
  std::uint64_t ran_here_ = 0;
  std::uint64_t syncs_ = 0;    // so far; a result is read after the next
  keeper* results_ = nullptr;  // blocks with results, freed with the scope
  int unwinding_ = std::uncaught_exceptions();

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

// Heads a block that outlives its task because it holds the result.
struct task_scope::keeper {
  keeper* next;
  void (*destroy)(keeper* k) noexcept;
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
struct spawned<T>::block : task_scope::keeper {
  explicit block(const task_scope& s) noexcept : scope(&s), spawned_at(s.syncs_) {}

  // The child may run until then, elsewhere.
  [[nodiscard]] bool has_ended() const noexcept { return scope->syncs_ != spawned_at; }

  const task_scope* scope;
  std::uint64_t spawned_at;
  detail::outcome<T> out;
  bool has_value = false;
  static void destroy_this(task_scope::keeper* k) noexcept {
    auto* self = static_cast<block*>(k);
    if (self->has_value) self->out.drop();
    delete self;
  }
};

template <class T>
T spawned<T>::get() {
  if (!block_->has_ended() || !block_->has_value)
    throw misuse_error("spawned::get() before sync(), twice, or of a cancelled task");
  block_->has_value = false;
  return block_->out.take();
}

template <class F>
auto task_scope::spawn(F&& f) {
  using function = std::decay_t<F>;
  using result = std::invoke_result_t<function&>;
  if constexpr (std::is_void_v<result>) {
    using child_of = plain_child<function>;
    static_assert(alignof(child_of) <= 16, "blocks of the pool are aligned to 16 bytes");
    detail::require_stack();
    void* const block = detail::this_worker().frames.allocate(sizeof(child_of));
    child* c = nullptr;
    try {
      c = ::new (block) child_of(*this, std::forward<F>(f));
    } catch (...) {
      detail::this_worker().frames.deallocate(block, sizeof(child_of));
      throw;
    }
    add(*c);
  } else {
    using block = typename spawned<result>::block;
    auto* const b = new block(*this);
    b->next = results_;
    b->destroy = &block::destroy_this;
    results_ = b;
    spawn([b, call = std::forward<F>(f)]() mutable {
      b->out.capture(call);
      if (b->out.threw()) b->out.take();  // rethrows
      b->has_value = true;
    });
    return spawned<result>(b);
  }
}

}  // namespace strata
