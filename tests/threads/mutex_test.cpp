// SPDX-License-Identifier: Apache-2.0
// Mutexes of every kind exclude, time out, and let everybody in some day.
#include "strata/mutex.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <new>
#include <stdexcept>
#include <thread>
#include <vector>

#include "../sched/support.hpp"
#include "strata/error.hpp"
#include "strata/fiber.hpp"
#include "strata/thread.hpp"

namespace strata::test {
namespace {

using namespace std::chrono_literals;

template <class Mutex>
class any_mutex : public ::testing::Test {};
using mutexes = ::testing::Types<mutex, timed_mutex, recursive_mutex, recursive_timed_mutex,
                                 shared_mutex, shared_timed_mutex>;
TYPED_TEST_SUITE(any_mutex, mutexes);

TYPED_TEST(any_mutex, counts_exactly) {
  for (const unsigned workers : {1U, 2U, 4U, 8U}) {
    runtime rt(with_workers(workers));
    rt.run([] {
      TypeParam m;
      long counter = 0;
      std::vector<thread> threads;
      constexpr int each = scaled(300, 100);
      for (int i = 0; i < 20; ++i) {
        threads.emplace_back([&, i] {
          for (int k = 0; k < each; ++k) {
            const std::lock_guard lock(m);
            const long seen = counter;
            if ((k + i) % 16 == 0) this_thread::yield();  // with the lock held
            counter = seen + 1;
          }
        });
      }
      for (thread& t : threads) t.join();
      EXPECT_EQ(counter, 20L * each);
    });
  }
}

TYPED_TEST(any_mutex, try_lock) {
  runtime rt(with_workers(2));
  rt.run([] {
    TypeParam m;
    ASSERT_TRUE(m.try_lock());
    bool other = true;
    thread([&] { other = m.try_lock(); }).join();
    EXPECT_FALSE(other);
    m.unlock();
    thread([&] {
      other = m.try_lock();
      if (other) m.unlock();
    }).join();
    EXPECT_TRUE(other);
  });
}

TYPED_TEST(any_mutex, used_by_threads_from_outside_too) {
  runtime rt(with_workers(2));
  TypeParam m;
  long counter = 0;
  constexpr int each = scaled(2000, 200);
  const auto count = [&] {
    for (int k = 0; k < each; ++k) {
      const std::lock_guard lock(m);
      ++counter;
    }
  };
  std::vector<std::thread> outside;
  for (int i = 0; i < 3; ++i) outside.emplace_back(count);
  rt.run([&] {
    std::vector<thread> threads;
    for (int i = 0; i < 5; ++i) threads.emplace_back(count);
    for (thread& t : threads) t.join();
  });
  for (std::thread& t : outside) t.join();
  EXPECT_EQ(counter, 8L * each);
}

template <class Mutex>
class any_timed_mutex : public ::testing::Test {};
using timed_mutexes = ::testing::Types<timed_mutex, recursive_timed_mutex, shared_timed_mutex>;
TYPED_TEST_SUITE(any_timed_mutex, timed_mutexes);

TYPED_TEST(any_timed_mutex, times_out) {
  runtime rt(with_workers(2));
  rt.run([] {
    TypeParam m;
    m.lock();
    thread([&] {
      const auto began = std::chrono::steady_clock::now();
      EXPECT_FALSE(m.try_lock_for(2ms));
      EXPECT_GE(std::chrono::steady_clock::now() - began, 2ms);
      EXPECT_FALSE(m.try_lock_until(std::chrono::system_clock::now() + 1ms));
      EXPECT_FALSE(m.try_lock_for(-1s));
      std::unique_lock lock(m, 1ms);
      EXPECT_FALSE(lock.owns_lock());
    }).join();
    binary_semaphore asked(0);
    thread waits([&] {
      asked.release();
      EXPECT_TRUE(m.try_lock_for(24h));
      m.unlock();
    });
    asked.acquire();
    this_thread::yield();
    m.unlock();
    waits.join();
    // Free again, whatever has timed out.
    EXPECT_TRUE(m.try_lock());
    m.unlock();
  });
}

// Some give up at the moment at which they are woken; the lock must not be lost.
TYPED_TEST(any_timed_mutex, timeouts_lose_no_wake_up) {
  runtime rt(with_workers(4));
  rt.run([] {
    TypeParam m;
    long counter = 0;
    std::atomic<long> entered{0};
    std::vector<thread> threads;
    for (int i = 0; i < 16; ++i) {
      threads.emplace_back([&, i] {
        for (int k = 0; k < scaled(100, 30); ++k) {
          if (i % 2 == 0 ? (m.lock(), true)
                         : m.try_lock_for(std::chrono::microseconds((k * 7 + i) % 90))) {
            ++counter;
            ++entered;
            if (k % 4 == 0) this_thread::yield();
            m.unlock();
          }
        }
      });
    }
    for (thread& t : threads) t.join();
    EXPECT_EQ(counter, entered);
    EXPECT_TRUE(m.try_lock());
    m.unlock();
  });
}

template <class Mutex>
class any_recursive_mutex : public ::testing::Test {};
using recursive_mutexes = ::testing::Types<recursive_mutex, recursive_timed_mutex>;
TYPED_TEST_SUITE(any_recursive_mutex, recursive_mutexes);

TYPED_TEST(any_recursive_mutex, is_free_after_as_many_unlocks) {
  runtime rt(with_workers(2));
  rt.run([] {
    TypeParam m;
    constexpr int depth = 1000;
    for (int i = 0; i < depth; ++i) {
      if (i % 2 == 0) {
        m.lock();
      } else {
        ASSERT_TRUE(m.try_lock());
      }
    }
    const auto is_free = [&] {
      bool got = false;
      thread([&] {
        got = m.try_lock();
        if (got) m.unlock();
      }).join();
      return got;
    };
    for (int i = 0; i < depth; ++i) {
      if (i % 250 == 0) {
        EXPECT_FALSE(is_free());
      }
      m.unlock();
    }
    EXPECT_TRUE(is_free());
  });
}

TEST(shared_mutex, readers_wait_until_a_time) {
  runtime rt(with_workers(2));
  rt.run([] {
    using std::chrono::steady_clock;
    using std::chrono::system_clock;
    shared_timed_mutex m;
    m.lock();
    thread([&] {
      const auto end = steady_clock::now() + 2ms;
      EXPECT_FALSE(m.try_lock_shared_until(end));
      EXPECT_GE(steady_clock::now(), end);
      EXPECT_FALSE(m.try_lock_shared_until(system_clock::now() + 1ms));
      EXPECT_FALSE(m.try_lock_shared_until(steady_clock::time_point::min()));
    }).join();
    binary_semaphore asked(0);
    thread waits([&] {
      asked.release();
      EXPECT_TRUE(m.try_lock_shared_until(system_clock::now() + 24h));
    });
    asked.acquire();
    this_thread::yield();
    m.unlock();
    waits.join();
    EXPECT_FALSE(m.try_lock()) << "a reader has it";
    EXPECT_TRUE(m.try_lock_shared_until(steady_clock::time_point::min())) << "beside the other";
    m.unlock_shared();
    m.unlock_shared();
    EXPECT_TRUE(m.try_lock());
    m.unlock();
  });
}

TEST(shared_mutex, readers_together_writers_alone) {
  for (const unsigned workers : {1U, 2U, 4U, 8U}) {
    runtime rt(with_workers(workers));
    rt.run([] {
      shared_timed_mutex m;
      std::atomic<int> readers{0}, writers{0}, wrong{0};
      std::vector<thread> threads;
      for (int i = 0; i < 20; ++i) {
        threads.emplace_back([&, i] {
          for (int k = 0; k < scaled(100, 40); ++k) {
            if ((i + k) % 4 == 0) {
              if (k % 3 == 0) {
                if (!m.try_lock_for(std::chrono::microseconds(k))) continue;
              } else {
                m.lock();
              }
              if (++writers != 1 || readers != 0) ++wrong;
              if (k % 8 == 0) this_thread::yield();
              --writers;
              m.unlock();
            } else {
              if (k % 5 == 0) {
                if (!m.try_lock_shared_for(std::chrono::microseconds(k))) continue;
              } else {
                m.lock_shared();
              }
              ++readers;
              if (writers != 0) ++wrong;
              if (k % 8 == 1) this_thread::yield();
              --readers;
              m.unlock_shared();
            }
          }
        });
      }
      for (thread& t : threads) t.join();
      EXPECT_EQ(wrong, 0);
      EXPECT_TRUE(m.try_lock());
      EXPECT_FALSE(m.try_lock_shared());
      m.unlock();
      EXPECT_TRUE(m.try_lock_shared());
      EXPECT_TRUE(m.try_lock_shared());
      EXPECT_FALSE(m.try_lock());
      m.unlock_shared();
      m.unlock_shared();
    });
  }
}

// One that locks as `Mine` gets through among some that overlap for ever as `Others`.
template <class Mine, class Others>
void expect_to_get_in_among_others(unsigned workers) {
  runtime rt(with_workers(workers));
  rt.run([] {
    shared_mutex m;
    std::atomic<bool> done{false};
    std::vector<thread> others;
    for (int i = 0; i < 4; ++i) {
      others.emplace_back([&] {
        while (!done) {
          const Others lock(m);
          this_thread::yield();
        }
      });
    }
    thread one([&] {
      for (int i = 0; i < 20; ++i) {
        const Mine lock(m);
        this_thread::yield();
      }
      done = true;
    });
    one.join();
    for (thread& t : others) t.join();
    EXPECT_TRUE(done);
  });
}
using reads = std::shared_lock<shared_mutex>;
using writes = std::lock_guard<shared_mutex>;

TEST(shared_mutex, a_writer_gets_in_among_readers) {
  for (const unsigned workers : {1U, 2U}) expect_to_get_in_among_others<writes, reads>(workers);
}

TEST(shared_mutex, a_reader_gets_in_among_writers) {
  expect_to_get_in_among_others<reads, writes>(2);
}

// A writer that gives up lets those in who waited for it.
TEST(shared_mutex, a_writer_that_gives_up_frees_the_readers) {
  runtime rt(with_workers(2));
  rt.run([] {
    for (int round = 0; round < 20; ++round) {
      shared_timed_mutex m;
      std::atomic<bool> gave_up{false};
      const std::shared_lock held(m);
      thread writer([&] {
        EXPECT_FALSE(m.try_lock_for(2ms));
        gave_up = true;
      });
      thread reader([&] {
        while (!gave_up && m.try_lock_shared()) {
          m.unlock_shared();
          this_thread::yield();
        }
        const std::shared_lock lock(m);
      });
      writer.join();
      reader.join();
    }
  });
}

// As an unlock() of a mutex does that lay there, which may be late.
TEST(shared_mutex, a_reader_is_not_let_in_by_whoever_wakes_an_address) {
  runtime rt(with_workers(1));
  rt.run([] {
    shared_mutex m;
    std::atomic<bool> in{false};
    m.lock();
    thread reader([&] {
      const std::shared_lock lock(m);
      in = true;
    });
    // The only worker: the reader waits when we go on.
    for (int i = 0; i < 10; ++i) this_thread::yield();
    static_assert(alignof(mutex) == 4);
    for (std::size_t at = 0; at < sizeof m; at += alignof(mutex))
      detail::unpark(reinterpret_cast<const char*>(&m) + at, UINT32_MAX);
    for (int i = 0; i < 10; ++i) this_thread::yield();
    EXPECT_FALSE(in);
    m.unlock();
    reader.join();
    EXPECT_TRUE(in);
  });
}

// The mark that holds readers back goes with the last writer, even if that one lets readers in.
TEST(shared_mutex, readers_that_were_let_in_keep_nobody_out) {
  runtime rt(with_workers(1));
  rt.run([] {
    // The only worker: everybody waits, or has ended, when we go on.
    const auto let_others_run = [] {
      for (int i = 0; i < 10; ++i) this_thread::yield();
    };
    shared_mutex m;
    int order = 0;
    int wrote = 0;
    int read = 0;
    binary_semaphore go_on(0);
    m.lock_shared();
    thread writer([&] {
      const std::lock_guard lock(m);
      wrote = ++order;
    });
    let_others_run();
    thread reader([&] {
      const std::shared_lock lock(m);
      read = ++order;
      go_on.acquire();
    });
    let_others_run();
    EXPECT_EQ(order, 0);
    m.unlock_shared();
    let_others_run();
    EXPECT_EQ(wrote, 1);
    EXPECT_EQ(read, 2);
    EXPECT_TRUE(m.try_lock_shared());
    m.unlock_shared();
    go_on.release();
    writer.join();
    reader.join();
    EXPECT_TRUE(m.try_lock());
    m.unlock();
  });
}

// Whoever is the last to hold a lock may end it, however many others have not returned from their
// unlock() yet.
TEST(shared_mutex, is_not_touched_after_its_end) {
  runtime rt(with_workers(6));
  rt.run([] {
    struct object {
      alignas(shared_mutex) std::array<unsigned char, sizeof(shared_mutex)> bytes;
      std::atomic<int> users{3};
      shared_mutex& lock() { return *std::launder(reinterpret_cast<shared_mutex*>(bytes.data())); }
    };
    constexpr long objects = scaled(100'000, 3'000);
    std::vector<object> all(objects);
    for (object& o : all) ::new (o.bytes.data()) shared_mutex;
    std::atomic<long> next{0};
    std::vector<thread> threads;
    for (int i = 0; i < 12; ++i) {
      threads.emplace_back([&] {
        for (long n = next++; n < 3 * objects; n = next++) {
          object& o = all[static_cast<std::size_t>(n / 3)];
          const bool yields = (n / 3) % 2 != 0;
          bool last = false;
          if (n % 3 == 0) {
            o.lock().lock_shared();
            if (yields) this_thread::yield();
            last = --o.users == 0;
            o.lock().unlock_shared();
          } else {
            o.lock().lock();
            if (yields) this_thread::yield();
            last = --o.users == 0;
            o.lock().unlock();
          }
          if (!last) continue;
          std::destroy_at(&o.lock());
          o.bytes.fill(0xFF);
        }
      });
    }
    for (thread& t : threads) t.join();
    for (object& o : all) ASSERT_EQ(std::ranges::count(o.bytes, 0xFF), std::ssize(o.bytes));
  });
}

TEST(call_once, once_for_all) {
  for (const unsigned workers : {1U, 4U}) {
    runtime rt(with_workers(workers));
    rt.run([] {
      once_flag flag;
      int made = 0;
      std::vector<thread> threads;
      for (int i = 0; i < 30; ++i) {
        threads.emplace_back([&] {
          call_once(
              flag,
              [&](int by) {
                this_thread::yield();
                made += by;
              },
              1);
          EXPECT_EQ(made, 1);
        });
      }
      for (thread& t : threads) t.join();
    });
  }
}

TEST(call_once, an_exception_leaves_it_to_the_next) {
  runtime rt(with_workers(2));
  rt.run([] {
    once_flag flag;
    std::atomic<int> tries{0}, thrown{0};
    std::vector<thread> threads;
    for (int i = 0; i < 20; ++i) {
      threads.emplace_back([&] {
        try {
          call_once(flag, [&] {
            const int mine = ++tries;
            this_thread::yield();
            if (mine < 5) throw std::runtime_error("not yet");
          });
        } catch (const std::runtime_error&) {
          ++thrown;
        }
      });
    }
    for (thread& t : threads) t.join();
    EXPECT_EQ(tries, 5);
    EXPECT_EQ(thrown, 4);
  });
}

// std::lock and std::scoped_lock work with them.
TEST(mutex, several_at_once_without_deadlock) {
  runtime rt(with_workers(4));
  rt.run([] {
    mutex a;
    recursive_mutex b;
    timed_mutex c;
    long together = 0;
    std::vector<thread> threads;
    for (int i = 0; i < 6; ++i) {
      threads.emplace_back([&, i] {
        for (int k = 0; k < 100; ++k) {
          if ((i + k) % 2 == 0) {
            const std::scoped_lock lock(a, b, c);
            ++together;
          } else {
            const std::scoped_lock lock(c, b, a);
            ++together;
          }
        }
      });
    }
    for (thread& t : threads) t.join();
    EXPECT_EQ(together, 600);
  });
}

struct locks_in_a_fiber : threaded {
  mutex* m;
  slot_ptr done;
  int* outcome;
  void start() {
    try {
      m->lock();
      *outcome = 1;
      m->unlock();
    } catch (const misuse_error&) {
      *outcome = 2;
    }
    sync(done);
    terminate();
  }
};

TEST(mutex, a_fiber_must_not_wait_for_one) {
  runtime rt(with_workers(2));
  rt.run([] {
    mutex m;
    int outcome = 0;
    {
      const std::lock_guard lock(m);
      completion done;
      token<locks_in_a_fiber>(&m, done.sptr(), &outcome);
      done.wait();
      EXPECT_EQ(outcome, 2);
    }
    // A free one it may take.
    completion done;
    token<locks_in_a_fiber>(&m, done.sptr(), &outcome);
    done.wait();
    EXPECT_EQ(outcome, 1);
    EXPECT_TRUE(m.try_lock());
    m.unlock();
  });
}

}  // namespace
}  // namespace strata::test
