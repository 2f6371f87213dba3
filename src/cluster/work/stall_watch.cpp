// SPDX-License-Identifier: Apache-2.0
#include "cluster/work/stall_watch.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace strata::cluster {
namespace {

constexpr std::int64_t patience_ns_max = 15'000'000'000;
constexpr std::int64_t pause_ns_max = 1'000'000'000;
// Of what one node says of itself; and so many nodes are quoted, beyond these only those who wait.
constexpr std::size_t text_bytes_max = std::size_t{16} << 10;
constexpr std::size_t quoted_max = 64;
constexpr std::size_t named_max = 8;

struct answer_head {
  std::uint32_t round;
  std::uint16_t is_idle, waits;
  std::uint64_t progress, sent, received;
};
static_assert(std::has_unique_object_representations_v<answer_head>);

bool is_stuck(stall_watch::waits w) noexcept {
  return w == stall_watch::waits::for_others || w == stall_watch::waits::for_fibers;
}

// Lines of printable characters: it is printed beside others'.
std::string in_lines(std::string text) {
  if (text.size() > text_bytes_max) {
    text.resize(text_bytes_max);
    text += " ...";
  }
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return (c < ' ' && c != '\n') || c == 0x7F; },
      '?');
  if (!text.empty() && text.back() != '\n') text += '\n';
  return text;
}

std::string names_of(const std::set<node_id>& nodes) {
  std::string text;
  std::size_t named = 0;
  for (const node_id n : nodes) {
    if (++named > named_max) break;
    text += (text.empty() ? "node " : ", node ") + std::to_string(n);
  }
  if (nodes.size() > named_max)
    text += " and " + std::to_string(nodes.size() - named_max) + " more";
  return text;
}

}  // namespace

stall_watch::stall_watch(mailer& mail, hands& here, const work_counts& counts,
                         const quiescence& quiet, const clock& time, const settings& s)
    : mail_(mail),
      here_(here),
      counts_(counts),
      quiet_(quiet),
      time_(time),
      settings_(s),
      moved_at_(time.now_ns()) {
  if (s.after_ns == 0) state_ = state::over;
}

// Half of it, so that a stall is noticed in time.
std::int64_t stall_watch::look_ns() const noexcept {
  return settings_.after_ns == 0 || mail_.self() != 0 ? INT64_MAX : settings_.after_ns / 2;
}

void stall_watch::watch_on(std::int64_t now_ns) {
  state_ = state::watching;
  moved_at_ = now_ns;
  awaited_.clear();
  now_.clear();
  before_.clear();
}

template <class Look>
void stall_watch::look_while_there_is_memory(Look look) {
  try {
    look();
  } catch (const std::bad_alloc&) {
    const std::lock_guard lock(mutex_);
    if (state_ != state::over) watch_on(time_.now_ns());
  }
}

void stall_watch::on_time() {
  if (mail_.self() == 0) look_while_there_is_memory([this] { look_on_time(); });
}

void stall_watch::look_on_time() {
  std::string found;
  std::unique_lock lock(mutex_);
  if (state_ == state::over) return;
  std::int64_t now = time_.now_ns();
  const observation mine = here_.observe();
  const bool has_moved = mine.progress != std::exchange(progress_seen_, mine.progress);
  if (state_ == state::told && !has_moved) return;  // once, and again only after progress
  if (has_moved || !mine.is_idle) return watch_on(now);
  if (state_ == state::asking) {
    if (now - round_at_ < std::min(settings_.after_ns / 4, patience_ns_max)) return;
    found = judge(now);
  } else {
    const state before = state_;
    const bool is_first = before == state::watching;
    if (is_first ? now - moved_at_ < settings_.after_ns : now < round_at_) return;
    lock.unlock();
    answer here = look_here(!is_first);
    lock.lock();
    // Meanwhile a node has come, or left, or is lost. Only this thread begins anything.
    if (state_ != before) return;
    now = time_.now_ns();
    if (is_first && !is_stuck(here.here)) return watch_on(now);
    if (is_first) unmoved_at_ = now;
    ask(now, std::move(here));
    // Of a job of one node.
    if (awaited_.empty()) found = judge(now);
  }
  lock.unlock();
  if (!found.empty()) here_.tell_of_stall(found);
}

void stall_watch::ask(std::int64_t now_ns, answer mine) {
  state_ = state::asking;
  round_at_ = now_ns;
  const question q{++round_, before_.empty() ? 0U : 1U};
  // Who leaves from here on has answered, or the round is given up.
  left_ = quiet_.inherited();
  now_.clear();
  now_[mail_.self()] = std::move(mine);
  awaited_.clear();
  for (const node_id n : mail_.members().all()) {
    if (n == mail_.self()) continue;
    awaited_.insert(n);
    mail_.say(n, kind::who_waits, std::as_bytes(std::span(&q, 1)));
  }
}

// All of it at one time: messages that come meanwhile may make somebody busy, and idle again.
stall_watch::answer stall_watch::look_here(bool with_text) {
  answer a;
  do {
    a.received = counts_.received.load(std::memory_order_seq_cst);
    a.sent = counts_.sent.load(std::memory_order_seq_cst);
    a.seen = here_.observe();
  } while (a.seen.is_idle && (a.received != counts_.received.load(std::memory_order_seq_cst) ||
                              a.sent != counts_.sent.load(std::memory_order_seq_cst)));
  if (!a.seen.is_idle) return a;
  a.here = here_.who_waits_here();
  if (with_text) a.text = in_lines(here_.describe_waits_here());
  return a;
}

std::int64_t stall_watch::on_their_way() const {
  std::uint64_t sent = left_.sent, received = left_.received;
  for (const auto& [n, a] : now_) {
    sent += a.sent;
    received += a.received;
  }
  return static_cast<std::int64_t>(sent - received);
}

// Empty: there is no stall, or not yet.
std::string stall_watch::judge(std::int64_t now_ns) {
  const answer& mine = now_.at(mail_.self());
  const observation still = here_.observe();
  const auto somebody = [this](auto&& what) {
    return std::any_of(now_.begin(), now_.end(), [&](const auto& one) { return what(one.second); });
  };
  const bool moves = somebody([](const answer& a) { return !a.seen.is_idle; }) || !still.is_idle ||
                     still.progress != mine.seen.progress;
  const bool may_be_helped =
      somebody([](const answer& a) { return a.here == waits::for_the_world; }) &&
      !somebody([](const answer& a) { return a.here == waits::for_fibers; });
  if (moves || may_be_helped || !is_stuck(mine.here) ||
      (settings_.deaf_while_busy && !awaited_.empty())) {
    watch_on(now_ns);
    return {};
  }
  // Who was silent then has nothing to be compared with.
  const bool has_moved = std::any_of(before_.begin(), before_.end(), [this](const auto& then) {
    const auto one = now_.find(then.first);
    return one != now_.end() && !one->second.is_as(then.second);
  });
  if (has_moved) {
    watch_on(now_ns);
    return {};
  }
  const bool same_nodes =
      std::equal(now_.begin(), now_.end(), before_.begin(), before_.end(),
                 [](const auto& a, const auto& b) { return a.first == b.first; });
  if (!same_nodes) unmoved_at_ = round_at_;
  const std::int64_t unmoved_ns = round_at_ - unmoved_at_;
  const bool is_proven = awaited_.empty() && on_their_way() == 0;
  if (same_nodes && (is_proven || unmoved_ns >= settings_.after_ns)) {
    state_ = state::told;
    return report(unmoved_ns);
  }
  state_ = state::pausing;
  round_at_ = now_ns + std::min(settings_.after_ns / 8, pause_ns_max);
  before_ = std::exchange(now_, {});
  return {};
}

std::string stall_watch::describe_round(std::int64_t unmoved_ns) const {
  const auto seconds = [](std::int64_t ns) { return std::to_string(ns / 1'000'000'000) + " s"; };
  if (!awaited_.empty())
    return "nothing has moved for " + seconds(unmoved_ns) +
           " on the nodes that answer, and something waits; no answer (stopped, or cut off?) "
           "from " +
           names_of(awaited_) + ":\n";
  if (on_their_way() > 0)
    return "nothing has moved for " + seconds(unmoved_ns) + " on any node, and something waits; " +
           std::to_string(on_their_way()) + " messages have been on their way as long:\n";
  return "nothing moves on any node any more, and something waits, for ever unless what it waits "
         "for comes from outside the job:\n";
}

std::string stall_watch::report(std::int64_t unmoved_ns) const {
  std::string text = "strata: " + describe_round(unmoved_ns);
  std::size_t quoted = 0, left_out = 0;
  for (const auto& [n, a] : now_) {
    if (quoted < quoted_max || a.here != waits::for_nothing) {
      text += a.text;
      ++quoted;
    } else {
      ++left_out;
    }
  }
  if (left_out != 0)
    text += "strata: nobody waits on " + std::to_string(left_out) + " more nodes\n";
  return text;
}

void stall_watch::members_have_changed() {
  const std::lock_guard lock(mutex_);
  if (state_ == state::asking || state_ == state::pausing) watch_on(time_.now_ns());
}

void stall_watch::stop() {
  const std::lock_guard lock(mutex_);
  state_ = state::over;
  awaited_.clear();
  asked_.reset();
}

void stall_watch::send_answer() {
  std::optional<question> q;
  {
    const std::lock_guard lock(mutex_);
    q = std::exchange(asked_, std::nullopt);
  }
  if (!q) return;
  const answer a = retry_without_memory([&] { return look_here(q->wants_text != 0); });
  const answer_head head{q->round,        a.seen.is_idle, static_cast<std::uint16_t>(a.here),
                         a.seen.progress, a.sent,         a.received};
  mail_.say(0, kind::waits_here, std::as_bytes(std::span(&head, 1)),
            std::as_bytes(std::span(a.text)));
}

bool stall_watch::on_message(node_id from, kind k, reader r) {
  if (k == kind::who_waits) {
    const auto q = r.take<question>();
    r.end();
    if (from != 0 || mail_.self() == 0 || q.wants_text > 1)
      throw malformed("a question that node 0 asks");
    {
      // Who has asked again does not wait for the answer to the question before.
      const std::lock_guard lock(mutex_);
      asked_ = q;
    }
    here_.answer_soon();
    return true;
  }
  if (k != kind::waits_here) return false;
  if (mail_.self() != 0) throw malformed("an answer that nobody awaits");
  look_while_there_is_memory([&] { on_answer(from, r); });
  return true;
}

void stall_watch::on_answer(node_id from, reader r) {
  const auto head = r.take<answer_head>();
  answer a{{head.is_idle != 0, head.progress},
           static_cast<waits>(head.waits),
           head.sent,
           head.received,
           in_lines(r.take_text())};
  if (head.is_idle > 1 || head.waits > static_cast<std::uint16_t>(waits::for_fibers))
    throw malformed("an answer of no meaning");
  std::string found;
  {
    const std::lock_guard lock(mutex_);
    // To a question that was given up, or asked twice.
    if (state_ != state::asking || head.round != round_) return;
    if (awaited_.erase(from) == 0) throw malformed("an answer that nobody awaits");
    now_[from] = std::move(a);
    if (awaited_.empty()) found = judge(time_.now_ns());
  }
  if (!found.empty()) here_.tell_of_stall(found);
}

std::uint32_t stall_watch::rounds() const {
  const std::lock_guard lock(mutex_);
  return round_;
}

}  // namespace strata::cluster
