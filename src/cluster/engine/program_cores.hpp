// SPDX-License-Identifier: Apache-2.0
// The thread that made the runtime does a worker's work while it runs something. On a core of
// another node it would share that core with the worker that is bound there, so it stays on those
// of its own node as long as there is a job, and gets back those that it had.
#pragma once
#include <thread>
#include <utility>
#include <vector>

#include "os/topology.hpp"

namespace strata::cluster {

class program_cores {
 public:
  // Of the calling thread; threads that it makes afterwards are bound with it.
  void bind(const std::vector<int>& cpus) {
    std::vector<int> before = os::allowed_cpus();
    if (!os::bind_current_thread(cpus)) return;
    before_ = std::move(before);
    thread_ = std::this_thread::get_id();
  }
  // Nothing happens when another thread ends the runtime than made it.
  void give_back() const {
    if (!before_.empty() && thread_ == std::this_thread::get_id())
      (void)os::bind_current_thread(before_);
  }

 private:
  std::vector<int> before_;
  std::thread::id thread_;
};

}  // namespace strata::cluster
