// SPDX-License-Identifier: Apache-2.0
#include "cluster/work/stealing.hpp"

#include <algorithm>
#include <array>
#include <new>
#include <utility>

#include "cluster/work/packed_token.hpp"
#include "strata/detail/check.hpp"

namespace strata::cluster {
namespace {

// Tokens in one answer.
constexpr std::uint32_t batch_max = 32;
// Victims asked before a node rests on its lifelines.
constexpr unsigned attempts_max = 4;
// A sender that is not asked sends at most so often.
constexpr std::int64_t unasked_every_ns = 50'000;
// Where tokens come more often than once in so many round trips they are asked for ahead. With 100
// two simulated nodes send each other what neither needed; with 10 less is gained on many.
constexpr std::int64_t ahead_below = 30;
constexpr std::size_t answer_bytes_max = part_bytes_max / 2;

struct steal_request {
  std::uint32_t batch;
  std::uint32_t wish;  // what becomes of it when there is nothing
};

// How many bytes functions of the program have made of it. Where none go with it they wait here,
// because they are many.
std::size_t bytes_made(const detail::task& prepared) {
  const detail::wire_type& type = *prepared.type->wire;
  if (type.prepare == nullptr) [[likely]]
    return 0;
  const std::size_t n = type.behind(prepared).size();
  return n != 0 ? n : answer_bytes_max;
}

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

void stealing::begins_token() { ask_ahead(0); }

void stealing::ask_ahead(std::uint32_t waiting_max) {
  if (giver_.load(std::memory_order_relaxed) == mail_.self() || here_.load() > waiting_max) return;
  const std::lock_guard lock(mutex_);
  if (!soon_over_ || settings_.how == balancing::sender) return;
  const node_id giver = giver_.exchange(mail_.self(), std::memory_order_relaxed);
  if (giver == mail_.self() || !mail_.members().works(giver)) return;
  ++counts_of_.ahead;
  ask(giver, wish::ahead);
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
  const steal_request request{batch_, static_cast<std::uint32_t>(w)};
  mail_.post(node, kind::steal, std::as_bytes(std::span(&request, 1)));
}

void stealing::rest() {
  state_.store(state::resting, std::memory_order_relaxed);
  const std::vector<node_id> ring = mail_.members().working();
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

template <class Take>
detail::task* stealing::next_to_send(detail::worker& frames, Take&& take) {
  for (;;) {
    detail::task* const t = take();
    if (t == nullptr || data_.prepare(*t, frames)) return t;
  }
}

void stealing::on_steal(node_id from, reader& r) {
  const auto request = r.take<steal_request>();
  r.end();
  if (request.wish > static_cast<std::uint32_t>(wish::ahead)) throw malformed("no such wish");
  const auto left = static_cast<wish>(request.wish);
  std::array<detail::task*, batch_max> found;
  std::uint32_t n = 0;
  const std::uint32_t wanted = std::clamp(request.batch, 1U, batch_max);
  // Nothing else is handled meanwhile, so no more is made into bytes than one answer takes.
  std::size_t made = 0;
  // Never more than about half of what waits here.
  while (n < wanted && made < answer_bytes_max && (n == 0 || here_.load() > n)) {
    detail::task* const t = next_to_send(here_.outsider(), [&] {
      return left == wish::ahead ? here_.take_shared() : here_.take_travelling();
    });
    if (t == nullptr) break;
    found[n++] = t;
    made += bytes_made(*t);
  }
  if (n != 0) {
    send_tokens(from, std::span(found.data(), n), here_.outsider());
    {
      const std::lock_guard lock(mutex_);
      counts_of_.given += n;
    }
    return shelf_.somebody_asks();
  }
  // What was shelved after the other had looked.
  if (send_from_shelf(from)) return shelf_.somebody_asks();
  shelf_.somebody_asks();
  if (left == wish::none) return mail_.post(from, kind::nothing, {});
  {
    const std::lock_guard lock(wishes_);
    if (std::find(waiting_.begin(), waiting_.end(), from) == waiting_.end())
      waiting_.push_back(from);
    wanted_.add(hunger::wishes);
  }
  // What is just being pushed may be missed: it is asked for once more when it is needed.
  if (left == wish::ahead) return here_.ask_everybody_soon();
  here_.ask_everybody();
  // Pushed before the wish was seen, by somebody who may never push again; or shelved. Partner:
  // feed().
  detail::task* const late =
      next_to_send(here_.outsider(), [&] { return here_.take_travelling(); });
  if (late != nullptr) {
    fed(from);
    send_tokens(from, std::span(&late, 1), here_.outsider());
  } else {
    (void)send_from_shelf(from);
  }
}

void stealing::fed(node_id node) {
  no_longer_waits(node);
  const std::lock_guard lock(mutex_);
  ++counts_of_.given;
}

void stealing::no_longer_waits(node_id node) {
  const std::lock_guard lock(wishes_);
  std::erase(waiting_, node);
  if (settings_.how != balancing::sender && waiting_.empty()) wanted_.remove(hunger::wishes);
}

void stealing::on_tokens(node_id from, reader& r) {
  bool unasked = false;
  {
    const std::lock_guard lock(mutex_);
    victims_.heard_of(from, r.take<std::uint32_t>());
    const std::int64_t now = time_.now_ns();
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
    here_.run_soon(data_.unpack(here_.outsider(), r));
    ++taken;
  }
  counts_.received.fetch_add(1, std::memory_order_seq_cst);
  {
    const std::lock_guard lock(mutex_);
    counts_of_.taken += taken;
  }
  // Now, and not when it begins: then a worker would wait for the wish to be sent.
  if (!unasked) return;
  try {
    ask_ahead(1);
  } catch (const std::bad_alloc&) {
    // It asks when it has nothing left. What came is counted, and whoever called would do so again.
  }
}

// The tokens are gone afterwards.
void stealing::send_tokens(node_id to, std::span<detail::task* const> tokens,
                           detail::worker& frames) {
  writer out;
  out.add(here_.load());
  for (detail::task* const t : tokens) {
    pack_token(out, *t, mail_.self());
    data_.goes_away(*t, to, frames);
    if (out.size() > answer_bytes_max && t != tokens.back()) {
      counts_.sent.fetch_add(1, std::memory_order_seq_cst);
      mail_.post(to, kind::tokens, out.bytes());
      out = writer();
      out.add(here_.load());
    }
  }
  counts_.sent.fetch_add(1, std::memory_order_seq_cst);
  mail_.post(to, kind::tokens, out.bytes());
}

// A task that is on the shelf, to a node that has asked for one, which is then not waiting any
// more.
bool stealing::send_from_shelf(node_id to) {
  writer out;
  out.add(here_.load());
  if (!shelf_.pass_on(out, to)) return false;
  // Before it is sent: who has got it may wish for more at once.
  no_longer_waits(to);
  counts_.sent.fetch_add(1, std::memory_order_seq_cst);
  mail_.post(to, kind::tokens, out.bytes());
  // Off the shelf; not before it counts as sent again.
  counts_.received.fetch_add(1, std::memory_order_seq_cst);
  return true;
}

void stealing::feed(detail::worker& w) {
  bool gave = false;
  if (const std::optional<node_id> to = who_is_fed()) {
    detail::task* const t = next_to_send(w, [&] { return here_.take_travelling_from(w); });
    if (t != nullptr) {
      fed(*to);
      send_tokens(*to, std::span(&t, 1), w);
      gave = true;
    }
  }
  gave |= shelf_.fill(w);
  // Shelved, then looked for wishes. Partner: on_steal(), which records a wish and then looks at
  // the shelf.
  if (settings_.how != balancing::sender && wanted_.is_for(hunger::wishes)) {
    if (const std::optional<node_id> to = who_is_fed()) gave |= send_from_shelf(*to);
  }
  if (!wanted_.is_for(hunger::wishes | hunger::shelf)) return;
  // The next push may have something for the next one. Where the oldest task stays on this node,
  // not before that is gone; thieves of this node who take it ask again themselves.
  const bool blocked = !gave && settings_.how != balancing::sender && w.deque.has_shared();
  blocked ? w.deque.ask_at_oldest() : w.deque.ask();
}

std::optional<node_id> stealing::who_is_fed() {
  if (settings_.how == balancing::sender) {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    const std::int64_t now = time_.now_ns();
    if (!lock.owns_lock() || now - sent_unasked_at_ < unasked_every_ns) return std::nullopt;
    sent_unasked_at_ = now;
    const node_id to = victims_.next();
    return to != mail_.self() ? std::optional(to) : std::nullopt;
  }
  const std::lock_guard lock(wishes_);
  if (waiting_.empty()) return std::nullopt;
  return waiting_.front();
}

void stealing::on_lost(node_id node) { no_longer_waits(node); }

void stealing::members_have_changed() {
  for (unsigned n = 0; n < mail_.members().begun(); ++n) {
    if (!mail_.members().works(static_cast<node_id>(n))) no_longer_waits(static_cast<node_id>(n));
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

void stealing::take_back(reader r) {
  (void)r.take<std::uint32_t>();  // the load
  while (!r.empty()) {
    if (detail::task* const t = data_.come_back(here_.outsider(), r)) here_.run_soon(t);
  }
  counts_.received.fetch_add(1, std::memory_order_seq_cst);
}

void stealing::hand_over() {
  here_.ask_everybody();
  // The rest has its turn when this node tries again to leave.
  for (std::size_t made = 0; made < answer_bytes_max;) {
    detail::task* const t = here_.take_travelling();
    if (t == nullptr) return;
    node_id to = mail_.self();
    {
      const std::lock_guard lock(mutex_);
      victims_.prefer_near(0);
      to = victims_.next();
    }
    if (to == mail_.self()) return here_.run_soon(t);
    if (!data_.prepare(*t, here_.outsider())) continue;
    made += bytes_made(*t);
    send_tokens(to, std::span(&t, 1), here_.outsider());
    const std::lock_guard lock(mutex_);
    ++counts_of_.given;
  }
}

stealing::statistics stealing::counted() const {
  const std::lock_guard lock(mutex_);
  return counts_of_;
}

}  // namespace strata::cluster
