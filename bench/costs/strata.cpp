// SPDX-License-Identifier: Apache-2.0
// What the paths of docs/costs.md take that no comparison with others measures. The parameter names
// one of the table below; each has its own number of workers. Rounds are repeated, and the median
// counts.
#include <linux/membarrier.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <strata/blocking.hpp>
#include <strata/fiber.hpp>
#include <strata/fork_join.hpp>
#include <strata/options.hpp>
#include <strata/parallel.hpp>
#include <strata/runtime.hpp>
#include <strata/stop_token.hpp>
#include <strata/task_scope.hpp>
#include <strata/thread.hpp>
#include <string>
#include <thread>
#include <vector>

#include "bench/common/measure.hpp"
#include "bench/region/kernel.hpp"

namespace {

using namespace std::chrono_literals;
using bench::seconds_of;

struct timed {
  double seconds = 0;
  double units = 0;
  bool ok = true;
};

constexpr unsigned many = 10'000;  // of what takes nanoseconds
constexpr unsigned some = 500;     // of what takes microseconds

// ---- forks, scopes, loops ----

// Of children that run here, with their share of sync().
timed spawn() {
  unsigned ran = 0;
  const double s = seconds_of([&] {
    strata::task_scope scope;
    for (unsigned i = 0; i < many; ++i) scope.spawn([&ran] { ++ran; });
    scope.sync();
  });
  return {s, many, ran == many};
}

timed spawn_result() {
  std::vector<strata::spawned<unsigned>> results;
  results.reserve(many);
  unsigned right = 0;
  const double s = seconds_of([&] {
    strata::task_scope scope;
    for (unsigned i = 0; i < many; ++i) results.push_back(scope.spawn([i] { return i; }));
    scope.sync();
    for (unsigned i = 0; i < many; ++i) right += results[i].get() == i ? 1 : 0;
  });
  return {s, many, right == many};
}

// A step of one iteration that does next to nothing.
timed for_step() {
  constexpr unsigned steps = 1'000'000;
  unsigned ran = 0;
  const double s = seconds_of([&] {
    strata::parallel_for(
        0U, steps, [&ran](unsigned) { ran = bench::opaque(ran + 1); }, strata::grain{1});
  });
  return {s, steps, ran == steps};
}

unsigned forks_of(unsigned n) { return n < 2 ? 0 : 1 + forks_of(n - 1) + forks_of(n - 2); }

unsigned fib(unsigned n) {
  if (n < 2) return n;
  const auto [a, b] = strata::fork2join([n] { return fib(n - 1); }, [n] { return fib(n - 2); });
  return a + b;
}

timed forks() {
  constexpr unsigned n = 20;
  unsigned result = 0;
  const double s = seconds_of([&] { result = fib(bench::opaque(n)); });
  return {s, double(forks_of(n)), result == 6765};
}

// Two branches that wait for each other, so that one is stolen; whether that one throws.
void stolen(bool throws, unsigned& caught) {
  bench::meeting here;
  try {
    strata::fork2join([&] { here.pass(); },
                      [&] {
                        here.pass();
                        if (throws) throw std::runtime_error("thrown");
                      });
  } catch (const std::runtime_error&) {
    ++caught;
  }
}

// What a throw adds to it. Of single forks, as a wait for the core would outweigh many of them.
timed thrown() {
  unsigned caught = 0;
  std::array<std::vector<double>, 2> took;
  for (unsigned i = 0; i < some; ++i) {
    for (const bool throws : {false, true}) {
      took[throws].push_back(seconds_of([&] { stolen(throws, caught); }));
    }
  }
  return {bench::median(took[1]) - bench::median(took[0]), 1, caught == some};
}

// ---- fibers ----

struct leaf : strata::threaded {
  strata::slot_ptr done;
  explicit leaf(strata::slot_ptr d) : done(d) {}
  void start() {
    strata::sync(done);
    terminate();
  }
};

// Made; that they run is not measured.
timed tokens() {
  strata::completion done(many);
  const double s = seconds_of([&] {
    for (unsigned i = 0; i < many; ++i) strata::token<leaf>(done.sptr());
  });
  done.wait();
  return {s, many};
}

timed signals() {
  strata::completion done(many + 1);
  const strata::slot_ptr to = done.sptr();
  const double s = seconds_of([&] {
    for (unsigned i = 0; i < many; ++i) strata::sync(to);
  });
  strata::sync(to);
  done.wait();
  return {s, many};
}

// ---- threads that wait ----

// Two threads hand over to each other, so that each waits every time.
template <class First, class Second>
double in_turns(const First& first, const Second& second) {
  return seconds_of([&] {
    strata::thread a([&] {
      for (unsigned i = 0; i < some; ++i) first();
    });
    strata::thread b([&] {
      for (unsigned i = 0; i < some; ++i) second();
    });
    a.join();
    b.join();
  });
}

timed deadlines() {
  strata::binary_semaphore there(0);
  strata::binary_semaphore back(0);
  bool ok = true;
  const double s = in_turns(
      [&] {
        there.release();
        ok = back.try_acquire_for(1h) && ok;
      },
      [&] {
        ok = there.try_acquire_for(1h) && ok;
        back.release();
      });
  return {s, 2.0 * some, ok};
}

timed blocking_calls() {
  unsigned ran = 0;
  const double s = seconds_of([&] {
    for (unsigned i = 0; i < some; ++i) strata::blocking([&ran] { ++ran; });
  });
  return {s, some, ran == some};
}

timed descriptors() {
  std::array<int, 2> fds{};
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, fds.data()) != 0)
    bench::arguments::refuse("no pair of sockets");
  bool ok = true;
  const auto says = [&](int fd) {
    const char c = 'x';
    ok = ::write(fd, &c, 1) == 1 && ok;
  };
  const auto hears = [&](int fd) {
    char c = 0;
    ok = strata::io::read(fd, &c, 1) == 1 && ok;
  };
  const double s =
      in_turns([&] { says(fds[0]), hears(fds[0]); }, [&] { hears(fds[1]), says(fds[1]); });
  for (const int fd : fds) ::close(fd);
  return {s, 2.0 * some, ok};
}

// Threads of which each holds a stack, until all are there.
double hold_stacks(unsigned threads) {
  return seconds_of([&] {
    strata::barrier<> all(threads);
    std::vector<strata::thread> made;
    made.reserve(threads);
    for (unsigned i = 0; i < threads; ++i) made.emplace_back([&] { all.arrive_and_wait(); });
    for (strata::thread& t : made) t.join();
  });
}

// What the first time takes more than the second, which finds them in the pool. The only round.
timed stacks() {
  constexpr unsigned threads = 2000;
  const double first = hold_stacks(threads);
  return {first - hold_stacks(threads), threads};
}

// ---- from outside ----

timed heavy_fences(strata::runtime&) {
  bool ok = ::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
  std::atomic<bool> over{false};
  std::atomic<bool> runs{false};
  std::thread other([&] {
    runs = true;
    while (!over.load(std::memory_order_relaxed)) {
    }
  });
  while (!runs) std::this_thread::yield();
  const double s = seconds_of([&] {
    for (unsigned i = 0; i < some; ++i)
      ok = ::syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0 && ok;
  });
  over = true;
  other.join();
  return {s, some, ok};
}

// run() while a thread has the only worker, and only gives way.
timed run_busy(strata::runtime& r) {
  std::atomic<bool> over{false};
  std::atomic<bool> runs{false};
  r.submit([&] {
    runs = true;
    while (!over) strata::this_thread::yield();
    runs = false;
  });
  bench::spin_until([&] { return runs.load(); });
  const double s = seconds_of([&] {
    for (unsigned i = 0; i < some; ++i) r.run([] {});
  });
  over = true;
  bench::spin_until([&] { return !runs; });
  return {s, some};
}

// submit() to a worker that sleeps, until it runs that. We keep our core meanwhile.
timed wake(strata::runtime& r) {
  double s = 0;
  for (unsigned i = 0; i < 20; ++i) {
    std::this_thread::sleep_for(1ms);  // it does not search, so it sleeps by then
    std::atomic<bool> ran{false};
    s += seconds_of([&] {
      r.submit([&] { ran.store(true, std::memory_order_release); });
      bench::spin_until([&] { return ran.load(std::memory_order_acquire); });
    });
  }
  return {s, 20};
}

// ---- stop tokens ----

timed stop_sources() {
  bool ok = true;
  const double s = seconds_of([&] {
    for (unsigned i = 0; i < many; ++i) {
      const strata::stop_source source;
      ok = source.stop_possible() && ok;
    }
  });
  return {s, many, ok};
}

timed stop_requests() {
  std::vector<strata::stop_source> sources(many);
  bool ok = true;
  const double s = seconds_of([&] {
    for (strata::stop_source& source : sources) ok = source.request_stop() && ok;
  });
  return {s, many, ok};
}

// One that comes and goes.
timed stop_callbacks() {
  const strata::stop_source source;
  const strata::stop_token token = source.get_token();
  unsigned called = 0;
  const double s = seconds_of([&] {
    for (unsigned i = 0; i < many; ++i) {
      const strata::stop_callback each(token, [&called] { ++called; });
    }
  });
  return {s, many, called == 0};
}

// Everything: a source, its callback, the request that calls it.
timed stops_called() {
  unsigned called = 0;
  const double s = seconds_of([&] {
    for (unsigned i = 0; i < many; ++i) {
      strata::stop_source source;
      const strata::stop_callback each(source.get_token(), [&called] { ++called; });
      source.request_stop();
    }
  });
  return {s, many, called == many};
}

// ---- which ----

struct cost {
  const char* name;
  unsigned workers;
  timed (*inside)();                             // by a task of the runtime
  timed (*outside)(strata::runtime&) = nullptr;  // or by a thread outside
  bool repeats = true;
  bool profiled = false;
  std::optional<unsigned> spin_us = std::nullopt;
};

constexpr cost costs[] = {
    {"spawn", 1, &spawn},
    {"spawn-result", 1, &spawn_result},
    {"for-step", 1, &for_step},
    {"fork", 1, &forks},
    {"profiled", 1, &forks, nullptr, true, true},
    {"throw", 2, &thrown},
    {"token", 1, &tokens},
    {"signal", 1, &signals},
    {"deadline", 1, &deadlines},
    {"blocking", 1, &blocking_calls},
    {"descriptor", 1, &descriptors},
    {"stack", 1, &stacks, nullptr, false},
    {"heavy-fence", 1, nullptr, &heavy_fences},
    {"run-busy", 1, nullptr, &run_busy},
    {"wake", 1, nullptr, &wake, true, false, 0},
    {"stop-source", 1, &stop_sources},
    {"stop-request", 1, &stop_requests},
    {"stop-callback", 1, &stop_callbacks},
    {"stop-called", 1, &stops_called},
};

const cost& named(const bench::arguments& given) {
  std::string names;
  for (const cost& c : costs) {
    if (given.rest.size() == 1 && given.rest[0] == c.name) return c;
    names += (names.empty() ? "" : ", ") + std::string(c.name);
  }
  bench::arguments::refuse("the parameter is one of " + names);
}

timed median_round(const cost& c, strata::runtime& runtime) {
  const auto once = [&] {
    return c.inside != nullptr ? runtime.run([&c] { return c.inside(); }) : c.outside(runtime);
  };
  if (!c.repeats) return once();
  std::vector<timed> rounds;
  bool ok = once().ok;
  const double until = bench::seconds_now() + 0.3;
  while (rounds.size() < 3 || bench::seconds_now() < until) {
    rounds.push_back(once());
    ok = ok && rounds.back().ok;
  }
  const auto middle = rounds.begin() + static_cast<std::ptrdiff_t>(rounds.size() / 2);
  std::nth_element(rounds.begin(), middle, rounds.end(),
                   [](const timed& a, const timed& b) { return a.seconds < b.seconds; });
  return {middle->seconds, middle->units, ok};
}

}  // namespace

int main(int argc, char** argv) {
  strata::options options = strata::options::parse_or_exit(argc, argv);
  const bench::arguments given(argc, argv);
  const cost& c = named(given);
  if (given.workers != 1) bench::arguments::refuse("--workers: each cost has its own");
  options.workers = c.workers;
  options.profile = c.profiled;
  if (c.spin_us) options.spin_us = *c.spin_us;
  strata::runtime runtime(options);
  const timed t = median_round(c, runtime);
  return bench::print("costs", "strata", c.name, c.workers, t.seconds, t.units, t.ok);
}
