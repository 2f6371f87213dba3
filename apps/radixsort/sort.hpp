// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "apps/radixsort/passes.hpp"

// How the threads of a sort wait for each other, written once for all engines. An engine has the
// types
//   thread               made of a callable, joinable, movable, as std::thread; its constructor
//                        throws std::system_error when there is no more room for threads
//   barrier<Completion>  as std::barrier
namespace radixsort {

// Threads that are waited for in the end, also when not all of them could be made.
template <class Engine>
struct crew {
  std::vector<typename Engine::thread> threads;
  explicit crew(unsigned size) { threads.reserve(size); }
  ~crew() {
    for (auto& t : threads) t.join();
  }
  crew(const crew&) = delete;
  crew& operator=(const crew&) = delete;
};

// The paper's way: as many threads as there are blocks of keys are made for each parallel part, and
// end with it.
template <class Engine>
void sort_by_fork(passes& work) {
  const auto in_parallel = [&work](void (passes::*part)(unsigned) noexcept) {
    crew<Engine> all(work.threads());
    for (unsigned i = 0; i < work.threads(); ++i) {
      all.threads.emplace_back([&work, part, i] { (work.*part)(i); });
    }
  };
  while (!work.done()) {
    in_parallel(&passes::count);
    work.merge();
    in_parallel(&passes::transfer);
    work.swap();
  }
}

// The same threads from beginning to end; whoever comes last to the barrier does the serial part.
template <class Engine>
void sort_by_barrier(passes& work) {
  // Set before the barrier opens for the first time, read after it.
  bool given_up = false;
  const auto serial_part = [&]() noexcept {
    if (!given_up) work.serial_part();
  };
  typename Engine::template barrier<decltype(serial_part)> meeting(
      static_cast<std::ptrdiff_t>(work.threads()), serial_part);
  crew<Engine> all(work.threads());
  try {
    for (unsigned i = 0; i < work.threads(); ++i) {
      all.threads.emplace_back([&, i] {
        while (!work.done()) {
          work.count(i);
          meeting.arrive_and_wait();
          if (given_up) return;
          work.transfer(i);
          meeting.arrive_and_wait();
        }
      });
    }
  } catch (...) {
    // Those that exist wait for those that will never be: arrive in their place.
    given_up = true;
    const auto missing = work.threads() - all.threads.size();
    static_cast<void>(meeting.arrive(static_cast<std::ptrdiff_t>(missing)));
    throw;
  }
}

}  // namespace radixsort
