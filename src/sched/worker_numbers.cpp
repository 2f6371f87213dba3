// SPDX-License-Identifier: Apache-2.0
#include "sched/worker_numbers.hpp"

#include <cxxabi.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "strata/detail/worker.hpp"

// The linker's, as compilers declare it for themselves.
extern "C" void* __dso_handle;  // NOLINT(bugprone-reserved-identifier)

namespace strata::detail {
namespace {

// Never destroyed: OS threads outlive static objects.
struct all_numbers {
  std::mutex mutex;
  std::vector<unsigned> given_back;  // a heap, the smallest first
  std::atomic<unsigned> next{1};     // nobody has had it; written under the lock
  all_numbers* forgotten = nullptr;  // what was before a fork, for those who look for leaks
};
std::atomic<all_numbers*>& current() {
  static std::atomic<all_numbers*> one{new all_numbers};
  return one;
}
all_numbers& all() { return *current().load(std::memory_order_acquire); }

unsigned take() {
  all_numbers& numbers = all();
  const std::lock_guard lock(numbers.mutex);
  std::vector<unsigned>& heap = numbers.given_back;
  if (heap.empty()) {
    const unsigned value = numbers.next.load(std::memory_order_relaxed);
    if (heap.capacity() < value) heap.reserve(2 * std::size_t{value});  // for all that come back
    numbers.next.store(value + 1, std::memory_order_relaxed);
    return value;
  }
  std::pop_heap(heap.begin(), heap.end(), std::greater<>());
  const unsigned value = heap.back();
  heap.pop_back();
  return value;
}

void give_back(unsigned value) {
  all_numbers& numbers = all();
  const std::lock_guard lock(numbers.mutex);
  std::vector<unsigned>& heap = numbers.given_back;
  heap.push_back(value);
  std::push_heap(heap.begin(), heap.end(), std::greater<>());
}

// Of the calling OS thread; 0: it has none, or none any more.
constinit thread_local unsigned outside = 0;

}  // namespace

worker_number::worker_number() : value_(take()) {}
worker_number::~worker_number() { give_back(value_); }

void forget_worker_numbers() {
  // Its lock may be held by a thread that is no more.
  auto* const none = new all_numbers;
  none->forgotten = &all();
  none->next.store(none->forgotten->next.load(std::memory_order_relaxed),
                   std::memory_order_relaxed);
  current().store(none, std::memory_order_release);
}

unsigned number_outside() {
  if (outside != 0) [[likely]]
    return outside;
  const unsigned taken = take();
  // By the function behind thread_local objects with a destructor: one of those may ask when it
  // ends itself, after the number has been given back, and that one is given back after it.
  const auto give_back_at_end = [](void*) {
    if (const unsigned value = std::exchange(outside, 0); value != 0) give_back(value);
  };
  outside = taken;  // before: a signal's handler may ask, too
  if (abi::__cxa_thread_atexit(give_back_at_end, nullptr, &__dso_handle) != 0) {
    give_back(std::exchange(outside, 0));
    throw std::bad_alloc();
  }
  return taken;
}

}  // namespace strata::detail
