// SPDX-License-Identifier: Apache-2.0
// When this node asks for tokens, whom, and what comes of it.
#include "cluster/work/stealing.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "strata/detail/check.hpp"

namespace strata::cluster {
namespace {

// Victims asked before a node rests on its lifelines.
constexpr unsigned attempts_max = 4;
// Where tokens come more often than once in so many round trips they are asked for ahead. With 100
// two simulated nodes send each other what neither needed; with 10 less is gained on many.
constexpr std::int64_t ahead_below = 30;
// A node with tasks to spare asks its workers at least so often whether they send one.
constexpr std::int64_t asks_workers_every_ns = 1'000'000;

}  // namespace

balancing balancing_of(std::string_view name) {
  if (name == "sender") return balancing::sender;
  if (name == "informed") return balancing::informed;
  STRATA_CHECK(name == "random", name);
  return balancing::random;
}

stealing::stealing(mailer& mail, local_node& here, split_phase& data, shelving& shelf,
                   work_counts& counts, hunger& wanted, const clock& time,
                   const stealing_settings& settings)
    : mail_(mail),
      data_(data),
      shelf_(shelf),
      here_(here),
      counts_(counts),
      wanted_(wanted),
      time_(time),
      settings_(settings),
      victims_(mail.members(), mail.nodes(), settings.how == balancing::informed, settings.seed),
      unasked_(mail.members(), mail.nodes(), settings.seed),
      giver_(mail.self()) {
  if (settings.how == balancing::sender && mail.nodes() > 1) {
    wanted_.add(hunger::wishes);
    // For the first time; whoever shares asks itself again, and nobody else does. Partner: feed().
    here.ask_everybody_soon();
  }
}

void stealing::want_work() {
  if (state_.load(std::memory_order_relaxed) != state::content || mail_.nodes() < 2) return;
  if (!mail_.members().works(mail_.self())) return;
  const std::lock_guard lock(mutex_);
  if (state_.load(std::memory_order_relaxed) != state::content) return;
  if (settings_.how == balancing::sender) return;
  // Tokens that did not last ten round trips were too few, those that lasted a thousand too many.
  if (got_at_ != 0 && round_trip_ns_ != 0) {
    const std::int64_t lasted = time_.now_ns() - got_at_;
    if (lasted < 10 * round_trip_ns_) batch_ = std::min(2 * batch_, batch_max);
    if (lasted > 1000 * round_trip_ns_) batch_ = std::max(batch_ / 2, 1U);
    got_at_ = 0;
  }
  attempts_left_ = std::min<unsigned>(attempts_max, mail_.members().begun() - 1U);
  // With many neighbours all would be of this host, and work of another one would come by lifelines
  // alone.
  victims_.prefer_near(attempts_left_ / 2);
  state_.store(state::asking, std::memory_order_relaxed);
  ask_next();
}

std::int64_t stealing::ask_in_time() {
  if (settings_.how != balancing::sender || here_.load() == 0) return INT64_MAX;
  here_.ask_everybody_soon();
  return asks_workers_every_ns;
}

void stealing::begins_token() { ask_ahead(0); }

void stealing::ask_ahead(std::uint32_t waiting_max) {
  if (giver_.load(std::memory_order_relaxed) == mail_.self() || here_.load() > waiting_max) return;
  const std::lock_guard lock(mutex_);
  if (!soon_over_ || settings_.how == balancing::sender) return;
  const node_id giver = giver_.exchange(mail_.self(), std::memory_order_relaxed);
  if (giver == mail_.self() || !mail_.members().works(giver)) return;
  const request what = request_for(wish::ahead);
  try {
    mail_.post(giver, kind::steal, std::as_bytes(std::span(&what, 1)));
    ++counts_of_.ahead;
  } catch (const std::bad_alloc&) {
    // It asks when it has nothing left.
  }
}

void stealing::ask_next() {
  if (attempts_left_ == 0) return rest();
  --attempts_left_;
  const node_id victim = victims_.next();
  if (victim == mail_.self()) return rest();
  asked_ = victim;
  asked_at_ = time_.now_ns();
  ++counts_of_.asked;
  ask(victim, wish::none);
}

void stealing::ask(node_id node, wish w) {
  const request what = request_for(w);
  mail_.say(node, kind::steal, std::as_bytes(std::span(&what, 1)));
}

void stealing::rest() {
  state_.store(state::resting, std::memory_order_relaxed);
  const auto ring = retry_without_memory([this] { return mail_.members().working(); });
  const auto me =
      static_cast<std::size_t>(std::find(ring.begin(), ring.end(), mail_.self()) - ring.begin());
  for (std::size_t distance = 1; distance < ring.size(); distance *= 2) {
    ++counts_of_.lifelines;
    ask(ring[(me + distance) % ring.size()], wish::kept);
  }
}

bool stealing::on_message(node_id from, kind k, reader r) {
  switch (k) {
    case kind::steal:
      on_steal(from, r);
      return true;
    case kind::tokens:
      on_tokens(from, r);
      return true;
    case kind::nothing: {
      r.end();
      const std::lock_guard lock(mutex_);
      victims_.heard_of(from, 0);
      ++counts_of_.refused;
      if (state_.load(std::memory_order_relaxed) == state::asking) ask_next();
      return true;
    }
    default:
      return false;
  }
}

bool stealing::no_longer_waits(node_id node) {
  const std::lock_guard lock(wishes_);
  const bool waited = std::erase(waiting_, node) != 0;
  if (settings_.how != balancing::sender && waiting_.empty()) wanted_.remove(hunger::wishes);
  return waited;
}

void stealing::on_tokens(node_id from, reader& r) {
  bool unasked = false;
  {
    const std::lock_guard lock(mutex_);
    const auto load = r.take<std::uint32_t>();
    const std::int64_t now = time_.now_ns();
    victims_.heard_of(from, load);
    unasked_.heard_of(from, load, now);
    // Workers are busy meanwhile.
    unasked = state_.load(std::memory_order_relaxed) == state::content;
    soon_over_ = now - std::exchange(came_at_, now) < ahead_below * round_trip_ns_;
    if (state_.load(std::memory_order_relaxed) == state::asking) {
      const std::int64_t took = now - asked_at_;
      // Down at once: the first ones, while the job begins, are often slow.
      const bool less = round_trip_ns_ == 0 || took < round_trip_ns_;
      round_trip_ns_ = less ? took : (7 * round_trip_ns_ + took) / 8;
    }
    got_at_ = now;
    giver_.store(from, std::memory_order_relaxed);
    state_.store(state::content, std::memory_order_relaxed);
  }
  std::uint64_t taken = 0;
  while (!r.empty()) {
    if (detail::task* const t = data_.unpack(here_.network_worker(), r)) here_.run_soon(t);
    ++taken;
  }
  counts_.received.fetch_add(1, std::memory_order_seq_cst);
  {
    const std::lock_guard lock(mutex_);
    counts_of_.taken += taken;
  }
  // Now, and not when it begins: then a worker would wait for the wish to be sent.
  if (unasked) ask_ahead(1);
}

void stealing::on_lost(node_id node) { (void)no_longer_waits(node); }

void stealing::members_have_changed() {
  for (unsigned n = 0; n < mail_.members().begun(); ++n) {
    if (!mail_.members().works(static_cast<node_id>(n)))
      (void)no_longer_waits(static_cast<node_id>(n));
  }
  {
    const std::lock_guard lock(mutex_);
    const state now = state_.load(std::memory_order_relaxed);
    if (now == state::resting) state_.store(state::content, std::memory_order_relaxed);
    // It has answered what it got; this it did not.
    if (now == state::asking && mail_.members().of(asked_) == standing::left) ask_next();
  }
  want_work();
}

stealing::statistics stealing::counted() const {
  const std::lock_guard lock(mutex_);
  return counts_of_;
}

}  // namespace strata::cluster
