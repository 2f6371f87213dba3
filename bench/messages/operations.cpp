// SPDX-License-Identifier: Apache-2.0
// What operations between fibers of two nodes cost, on whole nodes: started by
// `strata run -n 2 --workers 1`. The first argument says which:
//   latency N  half a round trip of 64 bytes by put_sync, N times
//   steal N    a token of a busy node, from when the thief has nothing to do until it runs it;
//              tokens of 300 us: where getting one takes long, it is asked for ahead
//   request N [US]  the same with tokens of 20 ms, which nobody asks for ahead, or of US
//              microseconds, which are asked for ahead where they are short (cluster/work/stealing)
//   get MS     get_sync from a node whose only worker runs one fiber of MS milliseconds
//   block N [BYTES]  a block of 1 MiB there and back, by a block_move_sync each, N times: one way
//   idle S     nothing, for S seconds (any number of nodes)
//   empty      nothing at all (any number of nodes)
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <strata/fiber.hpp>
#include <strata/runtime.hpp>
#include <thread>

#include "bench/common/measure.hpp"

namespace {

using namespace strata;
using bench::median;
using bench::seconds_now;
using bench::spin_for;

// ---- latency ----

using ball = std::array<std::uint64_t, 8>;

struct court {
  global_ptr<ball> where;
  slot_ptr arrived;
};

// Plays the ball back until it says 0.
struct opponent : threaded {
  court other;
  global_ptr<court> mine;
  slot_ptr ready;
  ball here;
  void start() { put_sync(court{to_global(&here), to_sptr(ARRIVED)}, mine, ready); }
  void arrived() {
    const bool last = here[0] == 0;
    put_sync(here, other.where, other.arrived);
    if (last) terminate();
  }
  fiber<&opponent::arrived> ARRIVED{this, 1, 1};
};

std::vector<double> half_round_trips;

struct server : threaded {
  std::uint64_t rounds;
  slot_ptr done;
  court other;
  ball here;
  std::uint64_t each;
  double began;
  void start() {
    each = std::max<std::uint64_t>(rounds / 200, 1);
    invoke<opponent>(1, court{to_global(&here), to_sptr(ARRIVED)}, to_global(&other),
                     to_sptr(READY));
  }
  void ready() {
    here[0] = rounds + 1;
    began = seconds_now();
    arrived();
  }
  void arrived() {
    if (here[0] == 0) {
      sync(done);
      return terminate();
    }
    if (here[0] % each == 0) {
      const double now = seconds_now();
      half_round_trips.push_back((now - began) / static_cast<double>(each) / 2);
      began = now;
    }
    --here[0];
    put_sync(here, other.where, other.arrived);
  }
  fiber<&server::ready> READY{this, 1};
  fiber<&server::arrived> ARRIVED{this, 1, 1};
};

double latency(unsigned n) {
  completion done{1};
  invoke<server>(0, std::uint64_t{n}, done.sptr());
  done.wait();
  half_round_trips.erase(half_round_trips.begin());  // it began in the middle of things
  return median(half_round_trips);
}

// ---- steal ----

double ended_at = 0;  // on the thief

struct prey : threaded {
  global_ptr<std::uint64_t> began;
  global_ptr<double> waited;
  slot_ptr counted;
  std::uint64_t number;
  double lasts;
  void start() {
    const double now = seconds_now();
    put_sync(ended_at == 0 ? 0 : now - ended_at, waited, counted);
    put_sync(number, began, counted);
    spin_for(lasts);
    terminate();
    ended_at = seconds_now();
  }
};

// Each long enough for the next token to be there in time.
double steal(unsigned n, double lasts) {
  std::vector<double> waited(n);
  std::uint64_t began = 0;
  const volatile std::uint64_t& seen = began;
  completion done{2 * n};
  // We stay in this fiber, so nobody here runs the tokens. The next one is there before the thief
  // has finished the one before.
  for (std::uint64_t i = 0; i < n; ++i) {
    token<prey>(to_global(&began), to_global(&waited[i]), done.sptr(), i + 1, lasts);
    while (seen != i + 1) {
    }
  }
  done.wait();
  waited.erase(waited.begin());
  return median(waited);
}

// ---- get ----

const std::uint64_t answer = 42;  // on every node

struct busy : threaded {
  double seconds;
  global_ptr<global_ptr<const std::uint64_t>> where;
  slot_ptr ready;
  slot_ptr done;
  void start() {
    put_sync(global_ptr<const std::uint64_t>(to_global(&answer)), where, ready);
    spin_for(seconds);
    sync(done);
    terminate();
  }
};

std::vector<double> gets;

struct asker : threaded {
  double seconds;
  slot_ptr done;
  global_ptr<const std::uint64_t> where;
  std::uint64_t value;
  double first, began;
  void start() { invoke<busy>(1, seconds, to_global(&where), to_sptr(READY), done); }
  void ready() {
    first = seconds_now();
    ask();
  }
  void ask() {
    began = seconds_now();
    get_sync(where, &value, to_sptr(GOT));
  }
  void got() {
    const double now = seconds_now();
    gets.push_back(now - began);
    if (now + 0.005 < first + 0.8 * seconds) {
      spin_for(0.002);
      ask();
    } else {
      sync(done);
      terminate();
    }
  }
  fiber<&asker::ready> READY{this, 1};
  fiber<&asker::got> GOT{this, 1, 1};
};

double get(unsigned milliseconds) {
  completion done{2};
  invoke<asker>(0, milliseconds * 1e-3, done.sptr());
  done.wait();
  return median(gets);
}

// ---- block ----

// Fetches a block and takes it back.
struct mover : threaded {
  global_ptr<std::byte> there;
  std::vector<std::byte> here;
  unsigned rounds;
  slot_ptr done;
  mover(global_ptr<std::byte> t, std::size_t bytes, unsigned n, slot_ptr d)
      : there(t), here(bytes), rounds(n), done(d) {}
  void start() {
    if (rounds-- == 0) {
      sync(done);
      return terminate();
    }
    block_move_sync(there, to_global(here.data()), here.size(), to_sptr(FETCHED));
  }
  void fetched() { block_move_sync(to_global(here.data()), there, here.size(), to_sptr(AGAIN)); }
  fiber<&mover::fetched> FETCHED{this, 1, 1};
  fiber<&mover::start> AGAIN{this, 1, 1};
};

double block(unsigned n, std::size_t bytes) {
  std::vector<std::byte> mine(bytes);
  const auto move = [&](unsigned rounds) {
    completion done{1};
    invoke<mover>(1, to_global(mine.data()), bytes, rounds, done.sptr());
    done.wait();
  };
  move(3);
  std::vector<double> times;
  constexpr unsigned each = 10;
  for (unsigned i = 0; i < n; i += each) {
    const double began = seconds_now();
    move(each);
    times.push_back((seconds_now() - began) / (2 * each));
  }
  return median(times);
}

}  // namespace

int main(int argc, char** argv) {
  const options settings = options::parse(argc, argv);
  bench::arguments given(argc, argv);
  const std::string what = given.rest.empty() ? "" : given.rest[0];
  if (what != "latency" && what != "steal" && what != "request" && what != "get" &&
      what != "block" && what != "idle" && what != "empty")
    bench::arguments::refuse(
        "the first argument is latency, steal, request, get, block, idle or empty");
  given.rest.erase(given.rest.begin());
  const unsigned n = given.number(what == "get"       ? 1000
                                  : what == "idle"    ? 10
                                  : what == "latency" ? 100'000
                                  : what == "request" ? 100
                                                      : 1000,
                                  1, 10'000'000);
  if (!given.rest.empty()) given.rest.erase(given.rest.begin());
  const unsigned more = given.number(what == "block" ? 1U << 20 : 20'000, 1, 1U << 30);
  runtime rt(settings);
  double seconds = 0;
  if (what == "latency") seconds = rt.run([&] { return latency(n); });
  if (what == "steal") seconds = rt.run([&] { return steal(n, 300e-6); });
  if (what == "request") seconds = rt.run([&] { return steal(n, more * 1e-6); });
  if (what == "get") seconds = rt.run([&] { return get(n); });
  if (what == "block") seconds = rt.run([&] { return block(n, more); });
  if (what == "idle") std::this_thread::sleep_for(std::chrono::seconds(n));
  return bench::print("messages", "strata_operations", what, 1, seconds, 1, true);
}
