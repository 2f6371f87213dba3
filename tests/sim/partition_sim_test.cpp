// SPDX-License-Identifier: Apache-2.0
// A job that is cut in two while it computes: healed in time, everything goes on; else both halves
// hear of a node that is lost, by the deadline, and nobody waits for ever.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "ask_fib.hpp"
#include "messages/messenger.hpp"
#include "sim/simulated_job.hpp"
#include "strata/error.hpp"
#include "support.hpp"

namespace strata::test {
namespace {

constexpr std::int64_t ms = 1'000'000;
constexpr std::int64_t silence_ns = 50 * ms;  // is a loss; there are ten beats in it
// Of the time after which all have to know: what comes last before the cut, the beats between which
// a node looks, and a word that is lost a few times.
constexpr std::int64_t known_by_ns = silence_ns * 3 / 2;
// Before that a cut that heals is no loss, for the same reasons.
constexpr std::int64_t harmless_ns = silence_ns * 6 / 10;

class two_halves {
 public:
  explicit two_halves(std::uint64_t seed) : world_({.jitter_ns = 30'000, .loss = 0.02}, seed) {
    sim::job_model m;
    m.nodes = static_cast<net::node_id>(2 + world_.random.below(8));
    m.cost = two_microseconds;
    m.lost_after_ns = silence_ns;
    m.channel.first_timeout_ns = m.channel.most_timeout_ns = 2 * ms;
    job_ = std::make_unique<sim::job>(world_, m);
    for (net::node_id n = 0; n < m.nodes; ++n) half_of_.push_back(world_.random.below(2) == 0);
    const auto one = world_.random.below(m.nodes), other = (one + 1) % m.nodes;
    half_of_[other] = !half_of_[one];
    heard_.resize(m.nodes);
    for (net::node_id n = 0; n < m.nodes; ++n) {
      ports_.push_back(&job_->node(n).messenger.open());
      ids_.push_back(ports_.back()->id);
    }
    for (net::node_id n = 0; n < m.nodes; ++n) expect_something(n);
    cut_at_ = static_cast<std::int64_t>(200'000 + world_.random.below(2'000'000));
    world_.at(cut_at_, [this] { each_pair(&sim::world::cut); });
    job_->node(0).as_worker([this] { token<ask_fib>(18, &answer_); });
    job_->node(0).protocols.quiet.detect([this] { is_quiet_ = true; });
  }
  ~two_halves() {
    for (std::size_t n = 0; n < ports_.size(); ++n)
      job_->node(static_cast<net::node_id>(n)).messenger.close(ids_[n], *ports_[n]);
  }

  std::int64_t drawn(std::int64_t from_ns, std::int64_t to_ns) {
    return from_ns + static_cast<std::int64_t>(
                         world_.random.below(static_cast<std::uint64_t>(to_ns - from_ns)));
  }
  void heal_after(std::int64_t ns) {
    world_.at(cut_at_ + ns, [this] { each_pair(&sim::world::join); });
  }
  // As processes of a job do that has lost a node.
  void let_end_who_hears() { who_hears_ends_ = true; }

  void expect_all_goes_on() {
    ASSERT_TRUE(world_.run([this] { return is_quiet_; }, cut_at_ + 100 * silence_ns));
    EXPECT_GT(world_.now_ns(), cut_at_);
    EXPECT_EQ(answer_.value, 2584);
    for (net::node_id n = 0; n < job_->size(); ++n) send_to(n);
    ASSERT_TRUE(world_.run([this] { return nobody_waits(); }, world_.now_ns() + silence_ns));
    for (const auto& r : receives_) EXPECT_EQ(r->result().bytes, sizeof(std::uint64_t));
    world_.run([] { return false; }, world_.now_ns() + 3 * silence_ns);
    for (net::node_id n = 0; n < job_->size(); ++n)
      EXPECT_TRUE(job_->node(n).losses().empty()) << "node " << n;
    EXPECT_EQ(job_->failure(), nullptr);
  }

  void expect_both_hear() {
    EXPECT_TRUE(run_until([this] { return nobody_waits(); }, cut_at_ + known_by_ns))
        << "somebody waits still";
    EXPECT_FALSE(is_quiet_);
    for (net::node_id n = 0; n < job_->size(); ++n) {
      ASSERT_TRUE(heard_[n].has_value()) << "node " << n;
      EXPECT_NE(half_of_[*heard_[n]], half_of_[n]) << "node " << n << " of its own half";
      expect_lost(n);
    }
    // What was on its way arrives late, or never.
    world_.run([] { return false; }, world_.now_ns() + 3 * silence_ns);
  }

  // Where silence and patience end at about the same time.
  void expect_all_or_none_to_hear() {
    run_until([this] { return nobody_waits(); }, cut_at_ + 5 * silence_ns);
    if (std::none_of(heard_.begin(), heard_.end(), [](const auto& h) { return h.has_value(); }))
      return expect_all_goes_on();
    for (net::node_id n = 0; n < job_->size(); ++n) {
      ASSERT_TRUE(heard_[n].has_value()) << "node " << n;
      expect_lost(n);
    }
  }

 private:
  void each_pair(void (sim::world::*what)(net::node_id, net::node_id)) {
    for (net::node_id a = 0; a < job_->size(); ++a) {
      for (net::node_id b = 0; b < a; ++b) {
        if (half_of_[a] != half_of_[b]) (world_.*what)(a, b);
      }
    }
  }

  // Each waits for a word of the other half.
  net::node_id partner_of(net::node_id n) const {
    return static_cast<net::node_id>(std::find(half_of_.begin(), half_of_.end(), !half_of_[n]) -
                                     half_of_.begin());
  }
  messages::request& make(messages::action what, net::node_id at,
                          std::vector<std::unique_ptr<messages::request>>& all) {
    all.push_back(std::make_unique<messages::request>());
    messages::request& r = *all.back();
    r.what = what;
    r.messenger = &job_->node(at).messenger;
    r.mine = ports_[at];
    return r;
  }
  void expect_something(net::node_id n) {
    words_.push_back(std::make_unique<std::uint64_t>(0));
    messages::request& r = make(messages::action::receive, n, receives_);
    r.into = std::as_writable_bytes(std::span(words_.back().get(), 1));
    r.wanted.source = ids_[partner_of(n)];
    r.info.target = ids_[n];
    r.messenger->receive(r);
  }
  void send_to(net::node_id n) {
    const net::node_id from = partner_of(n);
    messages::request& r = make(messages::action::send, from, sends_);
    r.from = std::as_bytes(std::span(&sent_, 1));
    r.info = {ids_[from], ids_[n], 1, sizeof sent_};
    r.messenger->send(r);
  }
  [[nodiscard]] bool nobody_waits() const {
    return std::all_of(receives_.begin(), receives_.end(),
                       [](const auto& r) { return r->is_done(); });
  }
  void expect_lost(net::node_id n) {
    try {
      (void)receives_[n]->result();
      ADD_FAILURE() << "node " << n << " got what nobody sent";
    } catch (const node_lost_error& e) {
      EXPECT_EQ(e.node(), *heard_[n]);
    }
  }

  // A runtime that hears of a loss ends what its program waits for.
  template <class F>
  bool run_until(F&& is_over, std::int64_t limit_ns) {
    return world_.run(
        [&] {
          for (net::node_id n = 0; n < job_->size(); ++n) look_at(n);
          return is_over();
        },
        limit_ns);
  }
  void look_at(net::node_id n) {
    sim::simulated_node& node = job_->node(n);
    if (heard_[n] || node.losses().empty()) return;
    const auto& [lost, why] = *node.losses().begin();
    heard_[n] = lost;
    node.break_off(std::make_exception_ptr(node_lost_error(lost, why)));
    if (who_hears_ends_) world_.at(world_.now_ns() + ms, [&node] { node.crash(); });
  }

  sim::world world_;
  std::unique_ptr<sim::job> job_;
  std::vector<bool> half_of_;
  std::vector<std::optional<net::node_id>> heard_;  // by node: who is lost
  std::vector<messages::port*> ports_;
  std::vector<endpoint_id> ids_;
  std::vector<std::unique_ptr<messages::request>> receives_, sends_;
  std::vector<std::unique_ptr<std::uint64_t>> words_;
  const std::uint64_t sent_ = 1;
  answer answer_;
  std::int64_t cut_at_ = 0;
  bool is_quiet_ = false;
  bool who_hears_ends_ = false;
};

TEST(simulated_partition, that_heals_in_time_costs_no_more_than_that) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    two_halves t(seed);
    t.heal_after(t.drawn(ms, harmless_ns));
    t.expect_all_goes_on();
  }
}

TEST(simulated_partition, that_never_heals_both_halves_hear_of) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    two_halves(seed).expect_both_hear();
  }
}

TEST(simulated_partition, that_heals_too_late_both_halves_hear_of) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    two_halves t(seed);
    t.heal_after(t.drawn(known_by_ns + ms, 3 * silence_ns));
    t.expect_both_hear();
  }
}

TEST(simulated_partition, that_heals_just_then_all_hear_of_or_none) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    two_halves t(seed);
    t.let_end_who_hears();
    t.heal_after(t.drawn(harmless_ns, known_by_ns));
    t.expect_all_or_none_to_hear();
  }
}

}  // namespace
}  // namespace strata::test
