// SPDX-License-Identifier: Apache-2.0
#include "cluster/work/quiescence.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace strata::cluster {

quiescence::quiescence(mailer& mail, local_node& here, work_counts& counts)
    : mail_(mail), here_(here), counts_(counts) {
  children_.reserve(2);
}

bool quiescence::find_place() {
  const bool all = in_wave_.empty();
  const std::size_t n = all ? mail_.nodes() : in_wave_.size();
  const auto node_at = [&](std::size_t rank) {
    return all ? static_cast<node_id>(rank) : in_wave_[rank];
  };
  std::size_t rank = mail_.self();
  if (!all) {
    const auto at = std::find(in_wave_.begin(), in_wave_.end(), mail_.self());
    if (at == in_wave_.end()) return false;
    rank = static_cast<std::size_t>(at - in_wave_.begin());
  }
  parent_ = rank == 0 ? mail_.self() : node_at((rank - 1) / 2);
  children_.clear();
  for (std::size_t child = 2 * rank + 1; child < std::min(2 * rank + 3, n); ++child)
    children_.push_back(node_at(child));
  return true;
}

void quiescence::detect(std::function<void()> done, passive when) {
  callbacks finished;
  {
    const std::lock_guard lock(mutex_);
    // A wave that is under way says nothing of what was before this call.
    have_previous_ = false;
    const bool is_first = when_idle_.empty() && when_still_.empty();
    callbacks& waiting = when == passive::still ? when_still_ : when_idle_;
    retry_without_memory([&] { waiting.push_back(std::move(done)); });
    // A wave that waits until all are idle may wait for what this one does not.
    if (is_first || (when == passive::still && wave_.when != when)) begin_next_wave();
    finished = try_to_answer();
  }
  for (const auto& f : finished) f();
}

void quiescence::begin_next_wave() {
  if (mail_.members().is_elastic())
    in_wave_ = retry_without_memory([&] { return mail_.members().all(); });
  find_place();
  begin_wave({wave_.number + 1, when_still_.empty() ? passive::idle : passive::still});
}

void quiescence::begin_wave(wave_head wave) {
  wave_ = wave;
  awaited_ = static_cast<unsigned>(children_.size());
  below_ = {};
  pending_.store(true, std::memory_order_seq_cst);
  for (const node_id child : children_)
    mail_.say(child, kind::probe, std::as_bytes(std::span(&wave_, 1)),
              std::as_bytes(std::span(in_wave_)));
}

void quiescence::members_have_changed() {
  if (mail_.self() != 0) return;
  callbacks finished;
  {
    const std::lock_guard lock(mutex_);
    have_previous_ = false;
    if (when_idle_.empty() && when_still_.empty()) return;
    begin_next_wave();
    finished = try_to_answer();
  }
  for (const auto& f : finished) f();
}

void quiescence::inherit(std::uint64_t sent, std::uint64_t received) {
  if (mail_.self() != 0) return;
  const std::lock_guard lock(mutex_);
  inherited_.sent += sent;
  inherited_.received += received;
}

work_sums quiescence::inherited() const {
  const std::lock_guard lock(mutex_);
  return inherited_;
}

bool quiescence::is_passive() const {
  return wave_.when == passive::still ? here_.is_still() : here_.is_idle();
}

bool quiescence::is_passive_with(sums& mine) const {
  for (;;) {
    // Received first and last: a message that was being dealt with meanwhile may have brought work
    // that is_passive() saw too early. Whatever arrived completely before the first reading has
    // made the node busy before is_passive() looks.
    mine.received = counts_.received.load(std::memory_order_seq_cst);
    mine.sent = counts_.sent.load(std::memory_order_seq_cst);
    if (!is_passive()) return false;
    // Once more if not: what made nobody busy makes nobody idle again, who would ask.
    if (counts_.received.load(std::memory_order_seq_cst) == mine.received &&
        counts_.sent.load(std::memory_order_seq_cst) == mine.sent)
      return true;
  }
}

quiescence::callbacks quiescence::try_to_answer() {
  unsigned alone = 0;
  while (pending_.load(std::memory_order_seq_cst) && awaited_ == 0) {
    sums mine;
    if (!is_passive_with(mine)) return {};
    pending_.store(false, std::memory_order_seq_cst);
    const sums all{below_.sent + mine.sent + inherited_.sent,
                   below_.received + mine.received + inherited_.received};
    if (mail_.self() != 0) {
      const std::array<std::uint64_t, 3> answer{wave_.number, all.sent, all.received};
      mail_.say(parent_, kind::passive, std::as_bytes(std::span(answer)));
      return {};
    }
    if (all.sent == all.received && have_previous_ && all == previous_) return take_done();
    previous_ = all;
    have_previous_ = true;
    begin_next_wave();
    // Nobody is below, and another thread is about to change the sums, perhaps with what it holds
    // this lock for: it says so (node_is_idle(), members_have_changed()).
    if (children_.empty() && ++alone == 2) return {};
  }
  return {};
}

quiescence::callbacks quiescence::take_done() {
  if (wave_.when == passive::idle) return std::exchange(when_idle_, {});
  callbacks done = std::exchange(when_still_, {});
  have_previous_ = false;
  if (!when_idle_.empty()) begin_next_wave();
  return done;
}

void quiescence::node_is_idle() {
  // Partner: the store in begin_wave() and on_message(), after which is_passive() is asked.
  if (!pending_.load(std::memory_order_seq_cst)) return;
  callbacks finished;
  {
    const std::lock_guard lock(mutex_);
    finished = try_to_answer();
  }
  for (const auto& f : finished) f();
}

bool quiescence::on_message(node_id from, kind k, reader r) {
  callbacks finished;
  if (k == kind::probe) {
    const std::lock_guard lock(mutex_);
    const auto wave = r.take<wave_head>();
    if (wave.when > passive::still) throw malformed("a probe of no kind");
    // Of one that was given up, by way of nodes that did not know.
    if (static_cast<std::int32_t>(wave.number - wave_.number) <= 0 && wave_.number != 0)
      return true;
    if (r.empty() == mail_.members().is_elastic())
      throw malformed("a probe of a job of another kind");
    std::vector<node_id> named;
    retry_without_memory([&] { named.reserve(r.size() / sizeof(node_id)); });
    while (!r.empty()) {
      named.push_back(r.take<node_id>());
      // Once each: nobody is below itself.
      const bool is_next = named.size() == 1 || named[named.size() - 2] < named.back();
      if (!is_next || named.back() >= mail_.nodes() ||
          mail_.members().of(named.back()) == standing::absent)
        throw malformed("a probe of no node");
    }
    if (mail_.self() == 0) throw malformed("a stray probe");
    in_wave_ = std::move(named);
    if (!find_place() || from != parent_) throw malformed("a stray probe");
    begin_wave(wave);
    finished = try_to_answer();
  } else if (k == kind::passive) {
    const std::lock_guard lock(mutex_);
    const auto answer = r.take<std::array<std::uint64_t, 3>>();
    r.end();
    if (answer[0] != wave_.number) return true;
    if (awaited_ == 0 || std::find(children_.begin(), children_.end(), from) == children_.end())
      throw malformed("a stray answer");
    --awaited_;
    below_.sent += answer[1];
    below_.received += answer[2];
    finished = try_to_answer();
  } else {
    return false;
  }
  for (const auto& f : finished) f();
  return true;
}

std::uint32_t quiescence::waves() const {
  const std::lock_guard lock(mutex_);
  return wave_.number;
}

}  // namespace strata::cluster
