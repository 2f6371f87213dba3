// SPDX-License-Identifier: Apache-2.0
#include "cluster/members/liveness.hpp"

#include <algorithm>
#include <utility>

#include "base/one_line.hpp"
#include "base/shortened.hpp"

namespace strata::cluster {
namespace {

// Longer ones say no more.
constexpr std::size_t why_bytes_max = 1000;

// Beats in the time after which silence means loss. Before that neighbours find out whether it is
// their connection that is silent, and complain of it by others, which is a sign of life
// (detours.hpp).
constexpr std::int64_t beats_per_limit = 10;

}  // namespace

liveness::liveness(mailer& mail, const clock& time, std::int64_t limit_ns, loss lost)
    : mail_(mail),
      time_(time),
      limit_ns_(limit_ns),
      lost_(std::move(lost)),
      next_(mail.self()),
      before_(mail.self(), time.now_ns()),
      next_but_one_(mail.self()),
      before_but_one_(mail.self(), time.now_ns()),
      has_told_before_(mail.members().has(mail.self())),
      beat_at_(time.now_ns()) {
  find_neighbours();
}

// Of all who are there, also those who are leaving: everybody must see the same ring, or one waits
// for the beats of another that does not beat for it.
void liveness::find_neighbours() {
  next_ = before_.node = mail_.self();
  // It comes: node 0 knows it first, and whom it is to watch others have yet to know.
  if (!mail_.members().has(mail_.self())) {
    next_ = 0;
    return;
  }
  // Others wait for what follows of this: for an answer to one that comes, for instance.
  const auto ring = retry_without_memory([this] { return mail_.members().all(); });
  const auto me =
      static_cast<std::size_t>(std::find(ring.begin(), ring.end(), mail_.self()) - ring.begin());
  next_ = ring[(me + 1) % ring.size()];
  before_.node = ring[(me + ring.size() - 1) % ring.size()];
}

void liveness::members_have_changed() {
  const node_id self = mail_.self(), next = next_, before = before_.node;
  find_neighbours();
  // One has come between, unless that one is there no more.
  const auto but_one = [&](node_id now, node_id then, node_id but_one_then) {
    const node_id n = now != then ? then : but_one_then;
    return mail_.members().has(n) ? n : self;
  };
  next_but_one_ = but_one(next_, next, next_but_one_);
  before_but_one_.node = but_one(before_.node, before, before_but_one_.node);
  for (watched* const one : {&before_, &before_but_one_})
    one->heard_at.store(time_.now_ns(), std::memory_order_relaxed);
}

std::int64_t liveness::beat_ns() const noexcept { return limit_ns_ / beats_per_limit; }

void liveness::tell_that_we_live(node_id n) {
  constexpr std::byte watches_nobody{1};
  const bool watches = mail_.members().has(mail_.self());
  if (n != mail_.self()) mail_.say(n, kind::heartbeat, std::span(&watches_nobody, watches ? 0 : 1));
}

void liveness::beat(bool listening) {
  if (next_ == mail_.self()) return;
  for (const node_id n : {next_, next_but_one_}) tell_that_we_live(n);
  if (!has_told_before_ && mail_.members().has(mail_.self())) {
    tell_that_we_live(before_.node);
    has_told_before_ = true;
  }
  const std::int64_t now = time_.now_ns();
  // A node that was stopped for long has heard nobody, through no fault of theirs.
  const bool was_stopped = now - beat_at_ > limit_ns_ / 2;
  beat_at_ = now;
  for (watched* const one : {&before_, &before_but_one_}) look_at(*one, was_stopped || !listening);
}

void liveness::look_at(watched& one, bool proves_nothing) {
  if (one.heard.exchange(false, std::memory_order_relaxed) || proves_nothing) {
    one.heard_at.store(beat_at_, std::memory_order_relaxed);
  } else if (one.node != mail_.self() &&
             beat_at_ - one.heard_at.load(std::memory_order_relaxed) >= limit_ns_) {
    lost_(one.node, "silent for " + std::to_string(limit_ns_ / 1'000'000) + " ms");
  }
}

void liveness::heard_of(node_id n) noexcept {
  for (watched* const one : {&before_, &before_but_one_}) {
    if (n == one->node) one->heard.store(true, std::memory_order_relaxed);
  }
}

void liveness::tell(node_id lost, const std::string& why) {
  const writer told = retry_without_memory([&] {
    writer out;
    out.add(lost).add_text(why);
    return out;
  });
  for (const node_id n : retry_without_memory([this] { return mail_.members().all(); })) {
    if (n != mail_.self() && n != lost) mail_.say(n, kind::lost, told.bytes());
  }
}

bool liveness::on_message(node_id from, kind k, reader r) {
  if (k == kind::lost) {
    const auto node = r.take<node_id>();
    if (node >= mail_.nodes() || mail_.members().of(node) == standing::absent)
      throw malformed("the loss of no node");
    // One that is on its way in has not connected: it ends, and the job goes on. Nor does it matter
    // to whom one that has left is still connected.
    const standing s = mail_.members().of(from);
    if (s == standing::coming || s == standing::left) return true;
    lost_(node, one_line(shortened(r.take_text(), why_bytes_max)));
    return true;
  }
  if (k != kind::heartbeat) return false;
  if (!r.empty()) {
    (void)r.take<std::byte>();
    r.end();
    return true;
  }
  if (from == next_) next_but_one_ = mail_.self();
  if (from == before_.node) before_but_one_.node = mail_.self();
  return true;
}

}  // namespace strata::cluster
