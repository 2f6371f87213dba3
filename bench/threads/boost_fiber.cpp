// SPDX-License-Identifier: Apache-2.0
// Boost.Fiber: with one worker its own scheduler, with more its work stealing.
#include <malloc.h>

#include <boost/fiber/all.hpp>
#include <mutex>
#include <thread>
#include <vector>

#include "bench/common/kernel_threads.hpp"
#include "bench/threads/kernel.hpp"

namespace {

struct boost_fiber {
  using thread = boost::fibers::fiber;
  using mutex = boost::fibers::mutex;
  using condition_variable = boost::fibers::condition_variable;
  using barrier = boost::fibers::barrier;
  static void meet(barrier& b) { b.wait(); }
  static void yield() { boost::this_fiber::yield(); }
};

// The OS threads which, with the calling one, run fibers. They spin when there are none: asleep
// they would be woken at every hand-off.
class environment {
 public:
  explicit environment(unsigned workers) {
    if (workers == 1) return;
    for (unsigned i = 1; i < workers; ++i) {
      others_.emplace_back([this, workers] {
        boost::fibers::use_scheduling_algorithm<boost::fibers::algo::work_stealing>(workers);
        std::unique_lock<boost::fibers::mutex> lock(mutex_);
        ended_.wait(lock, [this] { return end_; });
      });
    }
    // Returns when all have come: the scheduler's constructor waits for them.
    boost::fibers::use_scheduling_algorithm<boost::fibers::algo::work_stealing>(workers);
  }
  ~environment() {
    {
      const std::lock_guard lock(mutex_);
      end_ = true;
    }
    ended_.notify_all();
    for (std::thread& t : others_) t.join();
  }
  environment(const environment&) = delete;
  environment& operator=(const environment&) = delete;

 private:
  boost::fibers::mutex mutex_;
  boost::fibers::condition_variable ended_;
  bool end_ = false;
  std::vector<std::thread> others_;
};

}  // namespace

int main(int argc, char** argv) {
  const bench::arguments given(argc, argv);
  bench::keep_on_processors(given.workers);
  // Its stacks come from malloc(), which by default gives memory of that size back to the system at
  // every chance. Keeping it makes the creation of fibers up to 15 times faster.
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  const environment here(given.workers);
  return bench::threads_main<boost_fiber>("boost_fiber", given, false);
}
