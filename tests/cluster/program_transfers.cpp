// SPDX-License-Identifier: Apache-2.0
#include "program_transfers.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <vector>

#include "strata/fiber.hpp"
#include "tests/common/require.hpp"
#include "tests/common/slow_builds.hpp"

namespace {

using namespace strata;
using test::require;

// Lives on node 1: reads a block of node 0, writes it back changed, many times over.
struct mirror : threaded {
  global_ptr<const std::uint32_t> from;
  global_ptr<std::uint32_t> to;
  unsigned count, rounds;
  slot_ptr done;
  std::vector<std::uint32_t> values;
  unsigned round = 0;
  mirror(global_ptr<const std::uint32_t> f, global_ptr<std::uint32_t> t, unsigned n, unsigned r,
         slot_ptr d)
      : from(f), to(t), count(n), rounds(r), done(d), values(n) {}
  void start() { fetch(); }
  void fetch() {
    if (round++ == rounds) {
      sync(done);
      return terminate();
    }
    block_move_sync(from, to_global(values.data()), count, to_sptr(HERE));
  }
  void here() {
    for (auto& v : values) v += 1;
    block_move_sync(to_global(values.data()), to, count, to_sptr(THERE));
  }
  void there() {
    // What was signalled is visible: read one value back.
    get_sync(to, &values[0], to_sptr(AGAIN));
  }
  fiber<&mirror::here> HERE{this, 1, 1};
  fiber<&mirror::there> THERE{this, 1, 1};
  fiber<&mirror::fetch> AGAIN{this, 1, 1};
};

// Every node floods every other with puts and signals at once.
struct flooder : threaded {
  unsigned signals;
  slot_ptr done;
  std::array<std::uint64_t, 64> seen{};
  flooder(unsigned s, slot_ptr d) : signals(s), done(d) {}
  void start() {
    ALL.init(signals * (num_nodes() - 1));
    ALL_SENT.init(num_nodes() - 1);
    const global_ptr<std::uint64_t> mine = to_global(seen.data());
    const slot_ptr all = to_sptr(ALL);
    const slot_ptr sent = to_sptr(ALL_SENT);
    const unsigned times = signals;
    for (unsigned n = 0; n < num_nodes(); ++n) {
      if (n != node_id()) invoke<sender>(static_cast<node_id_t>(n), mine, all, sent, times);
    }
  }
  struct sender : threaded {
    global_ptr<std::uint64_t> target;
    slot_ptr all, sent;
    unsigned times;
    void start() {
      for (unsigned i = 1; i <= times; ++i) put_sync<std::uint64_t>(i, target + node_id(), all);
      sync(sent);
      terminate();
    }
  };
  void everything() {
    for (unsigned n = 0; n < num_nodes(); ++n) {
      if (n != node_id()) require(seen[n] == signals, "the last value arrived last");
    }
    sync(done);
    sync(to_sptr(END));
  }
  void all_sent() { sync(to_sptr(END)); }
  void end() { terminate(); }
  fiber<&flooder::everything> ALL{this, 1};
  fiber<&flooder::all_sent> ALL_SENT{this, 1};
  fiber<&flooder::end> END{this, 2};
};

// Has a node put what it sends in place, without a pause, until the time is over: while one batch
// is confirmed the other fills all the room that there is.
struct pesterer : threaded {
  static constexpr unsigned batch = 20'000;
  global_ptr<std::uint64_t> there;
  slot_ptr over;
  std::chrono::steady_clock::time_point end =
      std::chrono::steady_clock::now() + std::chrono::seconds(3);
  pesterer(global_ptr<std::uint64_t> t, slot_ptr o) : there(t), over(o) {}
  void start() {
    send(to_sptr(FIRST));
    send(to_sptr(SECOND));
  }
  void send(slot_ptr confirmed) {
    for (std::uint64_t i = 0; i < batch; ++i) put_sync(i, there + node_id(), confirmed);
  }
  void go_on(slot_ptr confirmed) {
    if (std::chrono::steady_clock::now() < end)
      send(confirmed);
    else
      sync(to_sptr(END));
  }
  void first() { go_on(to_sptr(FIRST)); }
  void second() { go_on(to_sptr(SECOND)); }
  void both() {
    sync(over);
    terminate();
  }
  fiber<&pesterer::first> FIRST{this, batch, batch};
  fiber<&pesterer::second> SECOND{this, batch, batch};
  fiber<&pesterer::both> END{this, 2};
};

// Where a node can be pestered.
std::array<std::uint64_t, 64> pestered_here{};
struct pestered : threaded {
  global_ptr<global_ptr<std::uint64_t>> out;
  slot_ptr done;
  void start() {
    put_sync(to_global(pestered_here.data()), out, done);
    terminate();
  }
};

}  // namespace

void blocks(runtime& rt) {
  for (const unsigned count : {1U, 1000U, 1'000'000U}) {
    std::vector<std::uint32_t> values(count);
    for (unsigned i = 0; i < count; ++i) values[i] = i;
    constexpr unsigned rounds = 10;
    rt.run([&] {
      completion done;
      invoke<mirror>(1, global_ptr<const std::uint32_t>(node_id(), values.data()),
                     to_global(values.data()), count, rounds, done.sptr());
      done.wait();
    });
    for (unsigned i = 0; i < count; ++i) require(values[i] == i + rounds, "block moved");
  }
}

void flood(runtime& rt) {
  rt.run([&] {
    const unsigned n = num_nodes();
    completion done(n);
    for (unsigned i = 0; i < n; ++i)
      invoke<flooder>(static_cast<node_id_t>(i), test::scaled(20'000U, 2'000U), done.sptr());
    done.wait();
  });
}

// All but the one that hears whether it lives.
void keep_busy(runtime& rt) {
  rt.run([] {
    global_ptr<std::uint64_t> there;
    {
      completion told;
      invoke<pestered>(1, to_global(&there), told.sptr());
      told.wait();
    }
    completion over(num_nodes() - 2);
    for (unsigned n = 0; n < num_nodes(); ++n) {
      if (n != 1 && n != 2) invoke<pesterer>(static_cast<node_id_t>(n), there, over.sptr());
    }
    over.wait();
  });
}
