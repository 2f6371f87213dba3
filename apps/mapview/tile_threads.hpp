// SPDX-License-Identifier: Apache-2.0
// A thread for each tile. Where there is no room for one more, its tile is loaded by the caller:
// the picture comes later, but it comes.
#pragma once
#include <cstddef>
#include <new>
#include <strata/thread.hpp>
#include <system_error>
#include <vector>

namespace mapview {

class tile_threads {
 public:
  explicit tile_threads(std::size_t tiles) { threads_.reserve(tiles); }
  // Whatever they use outlives them.
  ~tile_threads() {
    for (std::size_t i = 0; i < threads_.size(); ++i) join(i);
  }
  tile_threads(const tile_threads&) = delete;
  tile_threads& operator=(const tile_threads&) = delete;

  // At most so many as were announced; `load` must not throw.
  template <class Load>
  void begin(const Load& load) {
    static_assert(noexcept(load()));
    try {
      threads_.emplace_back(load);
      return;
    } catch (const std::system_error&) {  // no room for a stack
    } catch (const std::bad_alloc&) {
    }
    threads_.emplace_back();
    load();
  }
  // Afterwards what was begun as number i is done.
  void join(std::size_t i) {
    if (threads_[i].joinable()) threads_[i].join();
  }

 private:
  std::vector<strata::thread> threads_;
};

}  // namespace mapview
