// SPDX-License-Identifier: Apache-2.0
// Receivers that choose by source or tag among far more than there is room for, and sends that are
// given up: whatever is asked for is found, in the order of its source, no more than that comes out
// of turn, and nobody waits for ever.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "../common/known_bytes.hpp"
#include "program_job.hpp"
#include "strata/message.hpp"
#include "tests/common/sampled.hpp"

namespace strata::test {
namespace {

using net::node_id;
using std::chrono::nanoseconds;

// ---- more senders than there is room for ----

// Endpoints of two nodes, each with some messages for one receiver.
class crowd {
 public:
  static constexpr unsigned on_each = sampled(900U, 500U), each = 3;
  static constexpr node_id senders = 2, nodes = senders + 1;

  // `model` is of so many nodes.
  crowd(std::uint64_t seed, const sim::job_model& model)
      : p(seed, model), sources_(senders * on_each) {
    for (unsigned i = 0; i < each * sources_.size(); ++i) left_.push_back(i);
    for (std::size_t i = left_.size(); i > 1; --i) std::swap(left_[i - 1], left_[p.below(i)]);
    p.begin(0, [this] { receive_all(); });
    for (node_id n = 0; n < senders; ++n) p.begin(n + 1, [this, n] { send_all(n); });
  }

  void run() {
    p.run([] { return true; }, 200'000 * program_job::ms);
    for (const source& s : sources_) EXPECT_EQ(s.received, (1U << each) - 1);
  }

  program_job p;

 private:
  struct source {
    std::optional<endpoint> at;
    endpoint_id id;
    unsigned received = 0;  // bits
    bool is_asked_for = false;
  };
  struct label {
    std::uint32_t source, number;
  };
  static message_tag tag_of(label l) { return l.source * each + l.number; }
  static label label_of(unsigned message) { return {message / each, message % each}; }

  void send_all(node_id n) {
    std::vector<std::vector<std::byte>> bytes;
    std::vector<transfer> sends;
    while (!target_) p.pause(100'000);
    for (unsigned i = n * on_each; i < (n + 1) * on_each; ++i) {
      source& s = sources_[i];
      s.at.emplace();
      s.id = s.at->id();
    }
    ++ready_;
    for (std::uint32_t number = 0; number < each; ++number) {
      for (std::uint32_t i = n * on_each; i < (n + 1) * on_each; ++i) {
        const label l{i, number};
        const std::uint64_t dice = p.below(40);
        bytes.emplace_back(sizeof l + (dice < 2 ? p.below(40'000) : 900 + p.below(200)));
        std::memcpy(bytes.back().data(), &l, sizeof l);
        endpoint& mine = *sources_[i].at;
        sends.push_back(dice % 10 == 0
                            ? mine.start_synchronous_send(target_, tag_of(l), bytes.back())
                            : mine.start_send(target_, tag_of(l), bytes.back()));
        // Some begin when others have been waited for already.
        if (p.below(300) == 0) p.pause(500'000);
      }
    }
    wait_all(sends);
    while (!over_) p.pause(program_job::ms);
    for (unsigned i = n * on_each; i < (n + 1) * on_each; ++i) sources_[i].at.reset();
  }

  // What somebody asks for; by_source: with any tag.
  struct wish {
    label which{};
    bool by_source = false;
    endpoint_id from;
    message_tag tag = any_tag;
    std::vector<std::byte> bytes;
    transfer receives;
  };
  wish any_wish(unsigned message) {
    wish w;
    w.which = label_of(message);
    const source& s = sources_[w.which.source];
    const std::uint64_t shape = p.below(4);
    w.by_source = shape == 0;
    if (shape < 2) w.from = s.id;
    if (shape == 2) w.from = any_endpoint_on(s.id.node());
    if (!w.by_source) w.tag = tag_of(w.which);
    return w;
  }

  bool is_received(label l) const { return (sources_[l.source].received >> l.number & 1U) != 0; }
  void note(const wish& w, const std::vector<std::byte>& bytes) {
    label l{};
    std::memcpy(&l, bytes.data(), sizeof l);
    EXPECT_EQ(l.source, w.which.source);
    unsigned& received = sources_[l.source].received;
    if (w.by_source) {
      EXPECT_EQ(received & ((1U << l.number) - 1), (1U << l.number) - 1) << "an older one is left";
    } else {
      EXPECT_EQ(l.number, w.which.number);
    }
    EXPECT_EQ(received >> l.number & 1U, 0U) << "it has come twice";
    received |= 1U << l.number;
  }

  void receive_all() {
    endpoint mine;
    target_ = mine.id();
    while (ready_ != senders) p.pause(100'000);
    while (!left_.empty()) {
      // Several at once, of different sources.
      std::vector<std::unique_ptr<wish>> wishes;
      for (auto n = p.below(8) == 0 ? 1 + p.below(300) : 1; n > 0 && !left_.empty(); --n) {
        const label l = label_of(left_.back());
        const bool is_next = !is_received(l) && !sources_[l.source].is_asked_for;
        if (is_next) {
          wishes.push_back(std::make_unique<wish>(any_wish(left_.back())));
          sources_[l.source].is_asked_for = true;
          // By its source another one may come, and this one is still to be asked for.
          if (wishes.back()->by_source) continue;
        } else if (!is_received(l)) {
          break;
        }
        left_.pop_back();
      }
      for (const auto& w : wishes) ask(mine, *w);
      for (const auto& w : wishes) {
        if (w->receives.valid()) {
          w->receives.wait();
          note(*w, w->bytes);
        }
        sources_[w->which.source].is_asked_for = false;
      }
    }
    over_ = true;
  }

  void ask(endpoint& mine, wish& w) {
    // Given up in time, or not.
    if (p.below(10) == 0) {
      std::vector<std::byte> bytes;
      transfer first = mine.start_receive_message(bytes, w.from, w.tag);
      if (first.wait_for(nanoseconds(p.below(60'000))) || !first.cancel()) {
        if (first.valid()) first.wait();
        return note(w, bytes);
      }
    }
    // What has been seen of a source does not come before what is older.
    if (w.by_source && p.below(2) == 0) {
      label newest{w.which.source, each - 1};
      while (is_received(newest)) --newest.number;
      (void)mine.wait_probe(any_endpoint, tag_of(newest));
    }
    if (p.below(10) == 0) {
      while (!mine.probe(w.from, w.tag)) p.pause(5'000);
    } else if (p.below(10) == 0) {
      (void)mine.wait_probe(w.from, w.tag);
    }
    w.receives = mine.start_receive_message(w.bytes, w.from, w.tag);
  }

  std::vector<source> sources_;
  std::vector<unsigned> left_;
  endpoint_id target_;
  unsigned ready_ = 0;
  bool over_ = false;
};

TEST(simulated_seeking, finds_what_is_asked_for_among_thousands_of_senders) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    crowd(seed, {.nodes = crowd::nodes}).run();
  }
}

// Along a row of nodes, where comers are possible, and over connections with little room.
TEST(simulated_seeking, goes_by_other_nodes) {
  const auto in_a_row = [](node_id a, node_id b) {
    return a + 1 == b || b + 1 == a ? std::optional<cluster::link>(1) : std::nullopt;
  };
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    crowd(seed, {.nodes = crowd::nodes,
                 .founders = crowd::nodes,
                 .credits_bytes = 8 << 10,
                 .links = in_a_row})
        .run();
  }
}

TEST(simulated_seeking, is_replayed_exactly_by_its_seed) {
  const auto outcome = [] {
    crowd c(7, {.nodes = crowd::nodes});
    c.run();
    return c.p.outcome();
  };
  EXPECT_EQ(outcome(), outcome());
}

// ---- no more than that ----

// One for each that is asked for comes out of turn, also where somebody looks again and again for
// what nobody sends.
TEST(simulated_seeking, brings_no_more_than_is_asked_for) {
  constexpr unsigned sources = 3000, bytes_each = 1024, counted_each = bytes_each + 64;
  constexpr unsigned whole = (256 << 10) / counted_each;
  constexpr unsigned with_room = whole + ((320 << 10) - whole * counted_each) / 64;
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    sim::world world(program_job::misbehaving, seed);
    sim::job job(world, {});
    messages::messenger& here = job.node(0).messenger;
    messages::messenger& there = job.node(1).messenger;
    messages::port& to = here.open();
    const endpoint_id target = to.id;
    const std::vector<std::byte> content(bytes_each);
    std::vector<messages::port*> from;
    std::vector<std::unique_ptr<messages::request>> sends;
    for (unsigned i = 0; i < sources; ++i) {
      from.push_back(&there.open());
      sends.push_back(std::make_unique<messages::request>());
      messages::request& r = *sends.back();
      r.what = messages::action::send;
      r.messenger = &there;
      r.mine = from.back();
      r.from = content;
      r.info = {from.back()->id, target, i, content.size()};
      there.send(r);
    }
    const auto settle = [&] { EXPECT_FALSE(world.run([] { return false; })); };
    settle();
    EXPECT_EQ(to.messages.size(), whole);
    EXPECT_FALSE(here.probe(to, target, {any_endpoint, sources}));  // nobody's
    settle();
    EXPECT_EQ(to.messages.size(), with_room);
    constexpr unsigned asked = 50;
    for (unsigned i = 0; i < asked; ++i) {
      EXPECT_FALSE(here.probe(to, target, {any_endpoint, sources + i}));
      const messages::pattern wanted{i % 2 == 0 ? from[sources - 1 - i]->id : any_endpoint,
                                     sources - 1 - i};
      EXPECT_FALSE(here.probe(to, target, wanted));
      settle();
      EXPECT_TRUE(here.probe(to, target, wanted));
      EXPECT_EQ(to.messages.size(), with_room + i + 1);
    }
    here.close(target, to);
    settle();
    for (unsigned i = 0; i < sources; ++i) {
      EXPECT_TRUE(sends[i]->is_done());
      there.close(from[i]->id, *from[i]);
    }
    EXPECT_EQ(job.failure(), nullptr);
  }
}

// ---- sends that are given up ----

// More than there is room for, one after the other, none of which is received; then nothing of them
// is there, and there is room.
TEST(simulated_recalls, leave_nothing_behind) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    program_job p(seed, {.nodes = 2, .transfer_bytes_min = 200'000});
    endpoint_id target;
    bool all_given_up = false, has_looked = false;
    unsigned kept = 0;
    p.begin(0, [&] {
      endpoint mine;
      target = mine.id();
      while (!all_given_up) p.pause(50 * program_job::ms);
      EXPECT_FALSE(mine.probe());
      has_looked = true;
      const std::vector<std::byte> bytes = mine.receive_message().content;
      EXPECT_EQ(bytes.size(), std::size_t{16} << 10);
      ++kept;
      EXPECT_FALSE(mine.probe());
    });
    p.begin(1, [&] {
      while (!target) p.pause(program_job::ms);
      endpoint mine;
      const std::vector<std::byte> large(std::size_t{1} << 20);
      for (int i = 0; i < 18; ++i) {
        std::vector<transfer> sends;
        // Each has its place there: 64 bytes of 320 KiB.
        for (int n = 0; n < 300; ++n) {
          const bool is_large = p.below(2) == 0;
          const auto bytes = std::span(large).first(is_large ? large.size() : p.below(1000));
          sends.push_back(mine.start_synchronous_send(target, 0, bytes));
        }
        EXPECT_FALSE(sends.back().wait_for(nanoseconds(p.below(2 * program_job::ms))));
      }
      {
        transfer sends = mine.start_send(target, 0, large);
        EXPECT_FALSE(sends.wait_for(nanoseconds(program_job::ms)));
      }
      all_given_up = true;
      while (!has_looked) p.pause(50 * program_job::ms);
      transfer sends = mine.start_send(target, 0, std::span(large).first(std::size_t{16} << 10));
      EXPECT_TRUE(sends.test()) << "it waits for room";
      sends.wait();
    });
    p.run([] { return true; }, 2'000'000 * program_job::ms);
    EXPECT_EQ(kept, 1U);
  }
}

// Given up while it is matched: it has been received, or is not there.
TEST(simulated_recalls, come_too_late_or_in_time) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    program_job p(seed, {.nodes = 2, .transfer_bytes_min = 200'000});
    endpoint_id target;
    unsigned received = 0, in_time = 0;
    constexpr message_tag last = 1;
    constexpr int times = 300;
    p.begin(0, [&] {
      endpoint mine;
      target = mine.id();
      for (;;) {
        p.pause(600'000);
        const message m = mine.receive_message();
        if (m.tag == last) return;
        EXPECT_TRUE(m.content.empty() || all_are(m.content.front(), m.content));
        ++received;
      }
    });
    p.begin(1, [&] {
      while (!target) p.pause(program_job::ms);
      endpoint mine;
      for (int i = 0; i < times; ++i) {
        std::vector<std::byte> bytes(1 + p.below(3) * 150'000, static_cast<std::byte>(i));
        {
          transfer sends = mine.start_synchronous_send(target, 0, bytes);
          if (sends.wait_for(nanoseconds(p.below(program_job::ms)))) ++in_time;
        }
        // Nobody reads it any more.
        std::fill(bytes.begin(), bytes.end(), std::byte{0xFF});
      }
      mine.send(target, last, std::array<std::byte, 1>{});
    });
    p.run([] { return true; }, 2'000'000 * program_job::ms);
    EXPECT_GE(received, in_time);
    EXPECT_LT(received, static_cast<unsigned>(times));
    EXPECT_GT(in_time, 0U);
  }
}

}  // namespace
}  // namespace strata::test
