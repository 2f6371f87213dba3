// SPDX-License-Identifier: Apache-2.0
// A completion whose last signal has been brought from outside, as by a message, when its
// computation fails: it is the signal's until that has been taken in.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <random>
#include <stdexcept>
#include <thread>

#include "fibers/slot_access.hpp"
#include "os/clock.hpp"
#include "sched/scheduler.hpp"
#include "strata/fiber.hpp"
#include "strata/runtime.hpp"

namespace strata {
namespace {

// Signals, and fails at once afterwards, when the worker is anywhere between waiting and asleep.
class outsider {
 public:
  explicit outsider(detail::scheduler& s) : workers_(s) {}
  ~outsider() {
    ends_.store(true);
    thread_.join();
  }
  outsider(const outsider&) = delete;
  outsider& operator=(const outsider&) = delete;
  void signal(completion& c) { target_.store(&c); }
  void wait_until_failed() const {
    while (target_.load() != nullptr) std::this_thread::yield();
  }

 private:
  void run() {
    std::minstd_rand random(1);
    while (!ends_.load()) {
      completion* const c = target_.load();
      if (c == nullptr) {
        std::this_thread::yield();
        continue;
      }
      for (auto pauses = random() % pauses_max; pauses != 0; --pauses) os::spin_pause();
      workers_.inject(detail::slot_access::signal(c));
      workers_.fail(std::make_exception_ptr(std::domain_error("a fiber's")));
      target_.store(nullptr);
    }
  }

  static constexpr unsigned pauses_max = 2000;
  detail::scheduler& workers_;
  std::atomic<completion*> target_{nullptr};
  std::atomic<bool> ends_{false};
  std::thread thread_{[this] { run(); }};
};

TEST(last_signal, ends_the_wait_before_a_later_failure_does) {
  constexpr int rounds = 3'000;
  options o;
  o.workers = 1;
  runtime rt(o);
  detail::scheduler* workers = nullptr;
  rt.run([&] { workers = detail::this_worker().owner; });
  outsider other(*workers);
  int told = 0;
  for (int i = 0; i < rounds; ++i) {
    try {
      rt.run([&] {
        const auto c = std::make_unique<completion>();
        other.signal(*c);
        try {
          c->wait();
        } catch (const std::domain_error&) {
          ++told;
        }
      });
    } catch (const std::domain_error&) {
      // The run's, if it has come before its end.
    }
    other.wait_until_failed();
  }
  EXPECT_EQ(told, 0);
}

}  // namespace
}  // namespace strata
