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
      before_(mail.self()),
      heard_at_(time.now_ns()),
      beat_at_(time.now_ns()) {
  find_neighbours();
}

// Of all who are there, also those who are leaving: everybody must see the same ring, or one waits
// for the beats of another that does not beat for it.
void liveness::find_neighbours() {
  next_ = before_ = mail_.self();
  // It comes: node 0 knows it first, and whom it is to watch others have yet to know.
  if (!mail_.members().has(mail_.self())) {
    next_ = 0;
    return;
  }
  const std::vector<node_id> ring = mail_.members().all();
  const auto me =
      static_cast<std::size_t>(std::find(ring.begin(), ring.end(), mail_.self()) - ring.begin());
  next_ = ring[(me + 1) % ring.size()];
  before_ = ring[(me + ring.size() - 1) % ring.size()];
}

void liveness::members_have_changed() {
  find_neighbours();
  heard_at_.store(time_.now_ns(), std::memory_order_relaxed);
}

std::int64_t liveness::beat_ns() const noexcept { return limit_ns_ / beats_per_limit; }

void liveness::beat(bool listening) {
  if (next_ == mail_.self()) return;
  mail_.say(next_, kind::heartbeat, {});
  const std::int64_t now = time_.now_ns();
  // A node that was stopped for long has heard nobody, through no fault of theirs.
  const bool was_stopped = now - beat_at_ > limit_ns_ / 2;
  beat_at_ = now;
  if (heard_.exchange(false, std::memory_order_relaxed) || was_stopped || !listening) {
    heard_at_.store(now, std::memory_order_relaxed);
  } else if (before_ != mail_.self() &&
             now - heard_at_.load(std::memory_order_relaxed) >= limit_ns_) {
    lost_(before_, "silent for " + std::to_string(limit_ns_ / 1'000'000) + " ms");
  }
}

void liveness::heard_of(node_id n) noexcept {
  if (n == before_) heard_.store(true, std::memory_order_relaxed);
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
  return k == kind::heartbeat;
}

}  // namespace strata::cluster
