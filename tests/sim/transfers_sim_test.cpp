// SPDX-License-Identifier: Apache-2.0
// Large messages that the network moves from memory to memory while nodes are lost: every send and
// receive ends, and once it has, nobody touches its memory any more.
#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "../common/known_bytes.hpp"
#include "messages/messenger.hpp"
#include "sim/simulated_job.hpp"
#include "strata/error.hpp"
#include "support.hpp"

namespace strata::test {
namespace {

using messages::action;
using messages::port;
using messages::request;

constexpr std::byte untouched{0x55};

// A send or receive, its memory, and what that is when it has ended.
struct operation {
  request r;
  std::vector<std::byte> bytes;
  bool has_ended = false;
};

class transfers_with_losses {
 public:
  explicit transfers_with_losses(std::uint64_t seed) : world_({.jitter_ns = 20'000}, seed) {
    const sim::job_model model{.nodes = nodes, .transfer_bytes_min = 50'000};
    job_ = std::make_unique<sim::job>(world_, model);
    for (net::node_id n = 0; n < nodes; ++n) {
      ports_.push_back(&job_->node(n).messenger.open());
      ids_.push_back(ports_.back()->id);
    }
  }

  // Everybody sends to everybody; with `crashed` that node goes in the middle, and the others hear
  // of it at different times.
  void run(int each, bool crashes) {
    for (int i = 0; i < each; ++i) {
      for (net::node_id from = 0; from < nodes; ++from) {
        const auto to = static_cast<net::node_id>((from + 1 + random() % (nodes - 1)) % nodes);
        const auto at = static_cast<std::int64_t>(random() % 2'000'000);
        world_.at(at, [this, from, to] { send(from, to); });
        world_.at(static_cast<std::int64_t>(random() % 2'000'000), [this, to] { receive(to); });
      }
    }
    if (crashes) {
      const auto at = static_cast<std::int64_t>(500'000 + random() % 1'500'000);
      world_.at(at, [this] { job_->node(gone).crash(); });
      for (net::node_id n = 0; n < nodes; ++n) {
        if (n == gone) continue;
        const auto heard = at + static_cast<std::int64_t>(random() % 400'000);
        // The network and the messages hear of it one after the other, in either order.
        world_.at(heard, [this, n] { job_->node(n).transfers.lose(gone); });
        world_.at(heard + static_cast<std::int64_t>(random() % 100'000) - 50'000,
                  [this, n] { break_node(n); });
      }
    }
    // What is lost is sent again for ever.
    EXPECT_FALSE(world_.run(
        [this] {
          look();
          return false;
        },
        crashes ? 50'000'000 : INT64_MAX));
    look();
    for (const auto& o : operations_) {
      if (crashes && job_->node(node_of(*o)).has_crashed()) continue;
      EXPECT_TRUE(o->r.is_done());
      EXPECT_TRUE(!o->has_ended || is_untouched(*o)) << "memory was used after its end";
    }
  }
  [[nodiscard]] std::uint64_t moved() {
    std::uint64_t all = 0;
    for (net::node_id n = 0; n < nodes; ++n) all += job_->node(n).messenger.counted().moved;
    return all;
  }
  [[nodiscard]] std::int64_t work_on_its_way() {
    std::int64_t all = 0;
    for (net::node_id n = 0; n < nodes; ++n) {
      const auto& c = job_->node(n).protocols.counts;
      all += static_cast<std::int64_t>(c.sent) - static_cast<std::int64_t>(c.received);
    }
    return all;
  }
  [[nodiscard]] int whole() const { return whole_; }
  [[nodiscard]] int lost() const { return lost_; }
  ~transfers_with_losses() {
    for (net::node_id n = 0; n < nodes; ++n) job_->node(n).messenger.close(ids_[n], *ports_[n]);
  }

 private:
  static constexpr net::node_id nodes = 4;
  static constexpr net::node_id gone = 2;

  std::uint64_t random() { return world_.random.next(); }
  static net::node_id node_of(const operation& o) {
    return o.r.is_receive() ? o.r.info.target.node() : o.r.info.source.node();
  }
  operation& make(action what, net::node_id node) {
    operations_.push_back(std::make_unique<operation>());
    request& r = operations_.back()->r;
    r.what = what;
    r.messenger = &job_->node(node).messenger;
    r.mine = ports_[node];
    return *operations_.back();
  }
  void send(net::node_id from, net::node_id to) {
    if (job_->node(from).has_crashed()) return;
    operation& o = make(action::send, from);
    const std::size_t bytes = 40'000 + random() % 300'000;
    o.bytes.assign(bytes, static_cast<std::byte>(bytes % 251));
    o.r.from = o.bytes;
    o.r.info = {ids_[from], ids_[to], 1, bytes};
    o.r.messenger->send(o.r);
  }
  void receive(net::node_id at) {
    if (job_->node(at).has_crashed()) return;
    operation& o = make(action::receive, at);
    o.bytes.resize(400'000);
    o.r.into = o.bytes;
    o.r.info.target = ids_[at];
    o.r.messenger->receive(o.r);
  }
  void break_node(net::node_id n) {
    job_->node(n).break_off(std::make_exception_ptr(node_lost_error(gone, "it is gone")));
  }
  // After everything that happens: memory whose operation has ended is used for something else.
  void look() {
    for (const auto& o : operations_) {
      if (o->has_ended || !o->r.is_done()) continue;
      o->has_ended = true;
      try {
        const message_info& m = o->r.result();
        if (o->r.is_receive()) {
          ++whole_;
          const std::span<const std::byte> got = std::span(o->bytes).first(m.bytes);
          EXPECT_TRUE(all_are(static_cast<std::byte>(m.bytes % 251), got));
        }
      } catch (const node_lost_error&) {
        ++lost_;
      }
      std::fill(o->bytes.begin(), o->bytes.end(), untouched);
    }
  }
  static bool is_untouched(const operation& o) { return all_are(untouched, o.bytes); }

  sim::world world_;
  std::unique_ptr<sim::job> job_;
  std::vector<port*> ports_;
  std::vector<endpoint_id> ids_;
  std::vector<std::unique_ptr<operation>> operations_;
  int whole_ = 0, lost_ = 0;
};

TEST(simulated_transfers, arrive_whole_and_are_counted_as_work) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    transfers_with_losses t(seed);
    t.run(15, false);
    EXPECT_EQ(t.whole(), 60);
    EXPECT_GT(t.moved(), 0U);
    EXPECT_EQ(t.work_on_its_way(), 0);
  }
}

TEST(simulated_transfers, end_with_a_lost_node_and_leave_memory_alone) {
  int whole = 0, lost = 0;
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    transfers_with_losses t(seed);
    t.run(15, true);
    whole += t.whole();
    lost += t.lost();
  }
  EXPECT_GT(whole, 0);
  EXPECT_GT(lost, 0);
}

}  // namespace
}  // namespace strata::test
