// SPDX-License-Identifier: Apache-2.0
// A value for each worker: what many tasks add to, without a lock and without waiting for each
// other's cache lines. (As oneTBB's enumerable_thread_specific and combinable.)
//
//   strata::per_worker<std::vector<hit>> found;
//   strata::parallel_for(0, n, [&](int i) {
//     if (auto h = look(i)) found.use([&](std::vector<hit>& mine) { mine.push_back(*h); });
//   });
//   std::vector<hit> all;
//   found.for_each([&](auto& part) { all.insert(all.end(), part.begin(), part.end()); });
//
// Which tasks meet in one value differs from run to run, so what comes of all of them should not
// depend on it. Where a loop's iterations each give a value to combine, parallel_reduce
// (strata/parallel.hpp) is simpler, and keeps their order.
#pragma once
#include <cstddef>
#include <functional>
#include <iterator>
#include <memory>
#include <type_traits>
#include <utility>

#include "strata/detail/per_worker_table.hpp"
#include "strata/detail/worker.hpp"

namespace strata {

/// One T for each worker that uses it, made then, on cache lines of its own. It may be made and
/// destroyed anywhere, in a runtime, outside or as a static object, and may outlive runtimes.
///
/// Every runtime of the process may use it, several at a time: their workers have values of their
/// own. So has every OS thread that is in no runtime: main(), other libraries' threads, a call of
/// strata::blocking(). A thread that is in run() has that of the worker whose place it takes. When
/// a worker or such an OS thread has ended, its value stays, and a later one may go on with it, so
/// there are never more of them than there were users at one time.
template <class T>
class per_worker {
 public:
  /// Values are T().
  per_worker() requires(std::is_default_constructible_v<T>) : make_([] { return T(); }) {}
  /// Values are what make() returns, which is called by the worker that needs one, perhaps by
  /// several at a time, and must do nothing that use()'s function must not.
  template <class Make>
  requires(std::is_invocable_r_v<T, const Make&>) explicit per_worker(Make make)
      : make_(std::move(make)) {}
  per_worker(const per_worker&) = delete;
  per_worker& operator=(const per_worker&) = delete;
  /// Destroys the values, on the calling thread. Nobody uses them any more.
  ~per_worker() {
    for (std::size_t i = values_.next(0); i != values_.none_left; i = values_.next(i + 1))
      delete &cell_of(i);
  }

  /// Returns f(the calling worker's T&), which stays on this worker and has T for itself until it
  /// returns: a preemptible thread is not interrupted meanwhile. Does not block, but where T is
  /// made: for memory, and for a lock that is held for an instant.
  ///
  /// f does what fibers may: where it forks, waits for anything (a contended strata::mutex, too) or
  /// asks for the thread's own things (endpoint, thread_specific_ptr), misuse_error is thrown
  /// there; this_thread::yield() does nothing. Outside a runtime the OS thread waits as it always
  /// does. f may call use() again: of another object, or of this one, where it finds the same T.
  /// What it has of T by reference or pointer is not to be kept: once f has returned the caller
  /// may go on on another worker. f's result may not be a reference.
  ///
  /// Visibility: f sees what earlier calls on this worker did to T. Throws what f and the making of
  /// T throw, and std::bad_alloc. Usable in fibers.
  template <class F>
  auto use(F&& f) -> std::invoke_result_t<F, T&> {
    static_assert(!std::is_reference_v<std::invoke_result_t<F, T&>>,
                  "a reference would still be used when another task has the value: return a copy");
    const detail::held_worker here;
    return std::invoke(std::forward<F>(f), mine(here.number()));
  }

  /// op(... op(first, T&) ..., T&) with all values there are, in no particular order: for the sum
  /// of numbers, combine(0L, std::plus<>()). The values stay as they are, unless op moves from
  /// them or changes them.
  ///
  /// Whoever calls has seen to it that nobody is in use(): it comes after the join, sync() or end
  /// of run() of all who were, and so sees what they did. Throws what op throws. Does not block; op
  /// may.
  template <class Result, class Op>
  [[nodiscard]] Result combine(Result first, Op op) {
    for_each([&](T& one) { first = op(std::move(first), one); });
    return first;
  }

  /// f(T&) for all values there are, in no particular order: to gather them, or to set them back.
  /// Otherwise as combine().
  template <class F>
  void for_each(F f) {
    for (T& one : *this) f(one);
  }

  /// A forward iterator over the values.
  class iterator;
  /// All values there are, in no particular order, for loops and algorithms; otherwise as
  /// combine(). Where there are many workers, and values take long to combine, by all of them at
  /// once: parallel_reduce(found, T(), [](T& one) { return std::move(one); }, join).
  [[nodiscard]] iterator begin() noexcept { return iterator(*this, values_.next(0)); }
  [[nodiscard]] iterator end() noexcept { return iterator(*this, values_.none_left); }

 private:
  // One alignment: of two, of which one depends on T, g++ 12 takes the last.
  struct alignas(alignof(T) > 64 ? alignof(T) : 64) cell {
    explicit cell(const std::function<T()>& make) : value(make()) {}
    T value;
  };

  [[nodiscard]] cell& cell_of(std::size_t number) const noexcept {
    return *static_cast<cell*>(values_.find(static_cast<unsigned>(number)));
  }

  T& mine(unsigned number) {
    void* one = values_.find(number);
    if (one == nullptr) [[unlikely]]
      one = make_mine(number);
    return static_cast<cell*>(one)->value;
  }
  [[gnu::noinline, gnu::cold]] void* make_mine(unsigned number) {
    auto made = std::make_unique<cell>(make_);
    // make() may have used this one itself.
    if (void* const one = values_.find(number)) return one;
    values_.store(number, made.get());
    return made.release();
  }

  const std::function<T()> make_;
  detail::per_worker_table values_;
};

template <class T>
class per_worker<T>::iterator {
 public:
  using iterator_category = std::forward_iterator_tag;
  using value_type = T;
  using difference_type = std::ptrdiff_t;
  using pointer = T*;
  using reference = T&;

  /// Of none.
  iterator() noexcept = default;
  reference operator*() const noexcept { return all_->cell_of(at_).value; }
  pointer operator->() const noexcept { return std::addressof(**this); }
  iterator& operator++() noexcept {
    at_ = all_->values_.next(at_ + 1);
    return *this;
  }
  iterator operator++(int) noexcept { return std::exchange(*this, std::next(*this)); }
  friend bool operator==(const iterator&, const iterator&) noexcept = default;

 private:
  friend class per_worker;
  iterator(per_worker& all, std::size_t at) noexcept : all_(&all), at_(at) {}
  per_worker* all_ = nullptr;
  std::size_t at_ = 0;  // whose value; none_left: at the end
};

}  // namespace strata
