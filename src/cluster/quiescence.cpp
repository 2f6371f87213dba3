// SPDX-License-Identifier: Apache-2.0
#include "cluster/quiescence.hpp"

#include <array>
#include <utility>

namespace strata::cluster {

quiescence::quiescence(mailer& mail, local_node& here, work_counts& counts)
    : mail_(mail), here_(here), counts_(counts) {}

unsigned quiescence::children() const {
  const unsigned first = 2U * mail_.self() + 1;
  const unsigned n = mail_.nodes();
  return first >= n ? 0 : first + 1 >= n ? 1 : 2;
}

void quiescence::detect(std::function<void()> done) {
  callbacks finished;
  {
    const std::lock_guard lock(mutex_);
    // A wave that is under way says nothing of what was before this call.
    have_previous_ = false;
    done_.push_back(std::move(done));
    if (done_.size() == 1) begin_wave(wave_ + 1);
    finished = try_to_answer();
  }
  for (const auto& f : finished) f();
}

void quiescence::begin_wave(std::uint32_t wave) {
  wave_ = wave;
  awaited_ = children();
  below_ = {};
  pending_.store(true, std::memory_order_seq_cst);
  for (unsigned i = 0; i < awaited_; ++i) {
    mail_.post(static_cast<node_id>(2U * mail_.self() + 1 + i), kind::probe,
               std::as_bytes(std::span(&wave_, 1)));
  }
}

bool quiescence::is_idle_with(sums& mine) const {
  // Received first and last: a message that was being dealt with meanwhile may have brought work
  // that is_idle() saw too early. Whatever arrived completely before the first reading has made the
  // node busy before is_idle() looks.
  mine.received = counts_.received.load(std::memory_order_seq_cst);
  mine.sent = counts_.sent.load(std::memory_order_seq_cst);
  return here_.is_idle() && counts_.received.load(std::memory_order_seq_cst) == mine.received &&
         counts_.sent.load(std::memory_order_seq_cst) == mine.sent;
}

quiescence::callbacks quiescence::try_to_answer() {
  while (pending_.load(std::memory_order_seq_cst) && awaited_ == 0) {
    sums mine;
    if (!is_idle_with(mine)) return {};
    pending_.store(false, std::memory_order_seq_cst);
    const sums all{below_.sent + mine.sent, below_.received + mine.received};
    if (mail_.self() != 0) {
      const std::array<std::uint64_t, 3> answer{wave_, all.sent, all.received};
      mail_.post(static_cast<node_id>((mail_.self() - 1) / 2), kind::passive,
                 std::as_bytes(std::span(answer)));
      return {};
    }
    if (all.sent == all.received && have_previous_ && all == previous_)
      return std::exchange(done_, {});
    previous_ = all;
    have_previous_ = true;
    begin_wave(wave_ + 1);
  }
  return {};
}

void quiescence::node_is_idle() {
  // Partner: the store in begin_wave() and on_message(), after which is_idle() is asked.
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
    if (from != (mail_.self() - 1) / 2 || mail_.self() == 0) throw malformed("a stray probe");
    const auto wave = r.take<std::uint32_t>();
    begin_wave(wave);
    finished = try_to_answer();
  } else if (k == kind::passive) {
    const std::lock_guard lock(mutex_);
    const auto answer = r.take<std::array<std::uint64_t, 3>>();
    if (awaited_ == 0 || (from - 1) / 2 != mail_.self()) throw malformed("a stray answer");
    if (answer[0] != wave_) return true;
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
  return wave_;
}

}  // namespace strata::cluster
