// SPDX-License-Identifier: Apache-2.0
// A program that knows nothing of strata and waits as C++ does, by nothing of pthreads' but threads
// themselves: run natively, and as it is under `strata pthread` with fewer workers than threads
// that wait for each other. Status 0 if all is right.
#include <array>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <future>
#include <latch>
#include <mutex>
#include <numeric>
#include <semaphore>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace std::chrono_literals;

constexpr int threads = 24;
constexpr int rounds = 50;

std::atomic<int> wrong{0};

void check(bool right, const char* what) {
  if (!right && wrong.fetch_add(1) < 10) std::printf("wrong: %s\n", what);
}

void same(long got, long wanted, const char* what) {
  if (got != wanted && wrong.fetch_add(1) < 10)
    std::printf("wrong: %s: %ld, not %ld\n", what, got, wanted);
}

// f(0) to f(threads - 1), each in a thread of its own, all at once.
template <class F>
void together(F f) {
  std::vector<std::thread> all;
  for (int i = 0; i < threads; ++i) all.emplace_back(f, i);
  for (std::thread& t : all) t.join();
}

// ---- calls that are made once ----

// What a thread has to call is its own, though others call theirs while it waits for its turn.
void once() {
  std::once_flag first, second;
  std::binary_semaphore begun(0), comes(0), fails(0);
  int calls = 0;
  std::thread failing([&] {
    try {
      std::call_once(first, [&] {
        begun.release();
        fails.acquire();
        throw std::runtime_error("not yet");
      });
      check(false, "the exception of a call that is made once");
    } catch (const std::runtime_error&) {
    }
  });
  begun.acquire();
  std::thread waiting([&] {
    comes.release();
    std::call_once(first, [&] { ++calls; });
  });
  comes.acquire();
  for (int i = 0; i < 1000; ++i) std::this_thread::yield();  // by now it waits
  std::call_once(second, [] {});
  fails.release();
  failing.join();
  waiting.join();
  same(calls, 1, "calls once");
}

// ---- futures ----

// Every thread but the last waits for another one.
int fibonacci(int n) {
  if (n < 2) return n;
  std::future<int> other = std::async(std::launch::async, fibonacci, n - 1);
  const int own = fibonacci(n - 2);
  return other.get() + own;
}

void futures() {
  same(std::async(std::launch::async, [] { return 7; }).get(), 7, "async");
  same(fibonacci(11), 89, "nested async");

  // A chain: when the first gets its value all others wait.
  std::vector<std::promise<int>> links(threads + 1);
  std::vector<std::thread> all;
  for (std::size_t i = 0; i < threads; ++i)
    all.emplace_back(
        [&, i] { links[i + 1].set_value(links[i].get_future().get() + static_cast<int>(i)); });
  links.front().set_value(1);
  same(links.back().get_future().get(), 1 + threads * (threads - 1) / 2, "chain of promises");
  for (std::thread& t : all) t.join();

  // Many wait for one.
  std::promise<int> one;
  const std::shared_future<int> seen = one.get_future().share();
  std::atomic<int> sum{0};
  std::thread setter([&] { one.set_value(3); });
  together([&](int) { sum += seen.get(); });
  setter.join();
  same(sum, 3 * threads, "shared future");

  try {
    std::async(std::launch::async, [] { throw std::runtime_error("as it should"); }).get();
    check(false, "exception of an async");
  } catch (const std::runtime_error& e) {
    check(e.what() == std::string("as it should"), "text of an exception");
  }
  std::packaged_task<int(int)> task([](int n) { return n + 1; });
  std::future<int> result = task.get_future();
  std::thread(std::move(task), 4).detach();
  same(result.get(), 5, "packaged task");
}

void futures_for_a_time() {
  std::promise<int> late;
  std::future<int> result = late.get_future();
  check(result.wait_for(0s) == std::future_status::timeout, "no time");
  check(result.wait_for(1ms) == std::future_status::timeout, "a time");
  check(result.wait_until(std::chrono::steady_clock::now() + 1ms) == std::future_status::timeout,
        "until a time of the steady clock");
  check(result.wait_until(std::chrono::system_clock::now() + 1ms) == std::future_status::timeout,
        "until a time of the system's clock");
  check(result.wait_until(std::chrono::system_clock::now() - 1h) == std::future_status::timeout,
        "until a time that has passed");
  std::atomic<bool> waits{false};
  std::thread setter([&] {
    waits.wait(false);
    late.set_value(9);
  });
  waits = true;
  waits.notify_one();
  check(result.wait_for(1h) == std::future_status::ready, "a value before the time");
  same(result.get(), 9, "value after a wait for a time");
  setter.join();
}

// ---- atomics ----

// Of a size that the kernel waits for itself, and of others, for which the library has a word of
// its own.
template <class T>
void ring(const char* what) {
  std::atomic<T> turn{0};
  int steps = 0;
  together([&](int me) {
    const T mine = static_cast<T>(me);
    for (int round = 0; round < rounds; ++round) {
      for (T seen; (seen = turn.load()) != mine;) turn.wait(seen);
      ++steps;
      turn = static_cast<T>((me + 1) % threads);
      turn.notify_all();
    }
  });
  same(steps, rounds * threads, what);
}

void flags() {
  std::atomic_flag set;
  std::atomic<int> through{0};
  std::thread setter([&] {
    set.test_and_set();
    set.notify_all();
  });
  together([&](int) {
    set.wait(false);
    ++through;
  });
  setter.join();
  same(through, threads, "flag");
}

// ---- semaphores, latches, barriers ----

// Each has one thread that takes from it: the C++ library's of version 12 can leave one of several
// asleep.
struct channel {
  std::array<int, 4> buffer{};
  std::counting_semaphore<4> room{4};
  std::counting_semaphore<4> there{0};
};

void semaphores() {
  constexpr int each = 200;
  std::array<channel, threads / 2> channels;
  std::atomic<long> sum{0};
  together([&](int me) {
    channel& c = channels[static_cast<std::size_t>(me / 2)];
    for (int i = 1; i <= each; ++i) {
      int& place = c.buffer[static_cast<std::size_t>(i) % c.buffer.size()];
      if (me % 2 == 0) {
        c.room.acquire();
        place = i;
        c.there.release();
      } else {
        c.there.acquire();
        sum += place;
        c.room.release();
      }
    }
  });
  same(sum, long{threads} / 2 * each * (each + 1) / 2, "what went through buffers");
  channel& first = channels.front();
  check(!first.there.try_acquire(), "empty at last");
  check(!first.there.try_acquire_for(1ms), "empty for a time");
  check(first.room.try_acquire_for(1h), "room at last");
}

void latches() {
  std::latch all(threads);
  std::latch left(threads);
  std::atomic<int> before{0};
  std::atomic<int> complete{0};
  std::vector<std::thread> own;
  for (int i = 0; i < threads; ++i)
    own.emplace_back([&] {
      ++before;
      all.arrive_and_wait();
      if (before == threads) ++complete;
      left.count_down();
    });
  left.wait();
  same(complete, threads, "all had arrived");
  for (std::thread& t : own) t.join();
}

void barriers() {
  std::vector<int> written(threads, 0);
  int phases = 0;
  long total = 0;
  auto add = [&]() noexcept {
    ++phases;
    total += std::accumulate(written.begin(), written.end(), 0L);
  };
  std::barrier gate(threads, add);
  together([&](int me) {
    for (int round = 0; round < rounds; ++round) {
      written[static_cast<std::size_t>(me)] = round;
      gate.arrive_and_wait();
    }
  });
  same(phases, rounds, "phases");
  same(total, long{threads} * rounds * (rounds - 1) / 2, "what was written before each phase");
}

// ---- static initialisation ----

std::atomic<int> arrived{0};
std::atomic<int> begun{0};

void await_all() {
  for (int seen; (seen = arrived.load()) != threads;) arrived.wait(seen);
}

struct slow {
  slow() {
    ++begun;
    await_all();  // all others need it by now
    std::promise<int> given;
    std::thread giver([&] { given.set_value(42); });
    value = given.get_future().get();
    giver.join();
  }
  int value = 0;
};

const slow& the_slow() {
  static const slow one;
  return one;
}

struct sure_at_last {
  sure_at_last() {
    const int attempt = ++begun;
    await_all();
    if (attempt < 3) throw std::runtime_error("not yet");
  }
};

void need_sure() {
  static const sure_at_last one;
  (void)one;
}

void arrive() {
  ++arrived;
  arrived.notify_all();
}

void statics() {
  std::atomic<int> sum{0};
  together([&](int) {
    arrive();
    sum += the_slow().value;
  });
  same(begun, 1, "constructions of one object");
  same(sum, 42 * threads, "the object that all waited for");

  begun = 0;
  arrived = 0;
  std::atomic<int> failed{0};
  together([&](int) {
    arrive();
    try {
      need_sure();
    } catch (const std::runtime_error&) {
      ++failed;
    }
  });
  same(begun, 3, "attempts to construct");
  same(failed, 2, "those whose attempt has failed");
}

// ---- all at once ----

// As many as the machine would not have as kernel threads that spin.
void many() {
  constexpr int count = 300;
  std::latch start(1);
  std::vector<std::future<int>> results;
  for (int i = 0; i < count; ++i)
    results.push_back(std::async(std::launch::async, [&start, i] {
      start.wait();
      return i;
    }));
  start.count_down();
  long sum = 0;
  for (auto& r : results) sum += r.get();
  same(sum, long{count} * (count - 1) / 2, "sum of many");
}

void stopping() {
  std::atomic<int> told{0};
  {
    std::jthread waits([&](const std::stop_token& stop) {
      const std::stop_callback tell(stop, [&] {
        told = 1;
        told.notify_all();
      });
      told.wait(0);
    });
  }
  same(told, 1, "stop");
}

}  // namespace

int main() {
  once();
  futures();
  futures_for_a_time();
  ring<int>("ring of an int");
  ring<long>("ring of a long");
  ring<signed char>("ring of a char");
  flags();
  semaphores();
  latches();
  barriers();
  statics();
  many();
  stopping();
  std::printf("%d wrong\n", wrong.load());
  return wrong == 0 ? 0 : 1;
}
