// SPDX-License-Identifier: Apache-2.0
// Tokens that leave this node: to who asks, to who waits, and all of them when it leaves itself.
#include <algorithm>
#include <array>
#include <exception>
#include <mutex>
#include <new>
#include <optional>

#include "cluster/work/counted_post.hpp"
#include "cluster/work/packed_token.hpp"
#include "cluster/work/put_back.hpp"
#include "cluster/work/stealing.hpp"

namespace strata::cluster {
namespace {

// A sender that has nobody to send to now looks again when it has so many tasks more, or fewer.
constexpr std::uint64_t ask_after = 8;
// And has no more calls away for each node of the job: whoever waits for one keeps a stack, and
// nothing else bounds how many a sender is ahead of those who make them.
constexpr std::size_t calls_away_max = 16;
constexpr std::size_t answer_bytes_max = part_bytes_max / 2;

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

template <class Take>
detail::task* stealing::next_to_send(detail::worker& frames, Take&& take) {
  for (;;) {
    detail::task* const t = take();
    if (t == nullptr || data_.prepare(*t, frames)) return t;
  }
}

void stealing::on_steal(node_id from, reader& r) {
  const auto asked = r.take<request>();
  r.end();
  if (asked.wish > static_cast<std::uint32_t>(wish::ahead)) throw malformed("no such wish");
  const auto left = static_cast<wish>(asked.wish);
  std::array<detail::task*, batch_max> found;
  std::uint32_t n = 0;
  const std::uint32_t wanted = std::clamp(asked.batch, 1U, batch_max);
  // Nothing else is handled meanwhile, so no more is made into bytes than one answer takes.
  std::size_t made = 0;
  // Never more than about half of what waits here.
  while (n < wanted && made < answer_bytes_max && (n == 0 || here_.load() > n)) {
    detail::task* const t = next_to_send(here_.network_worker(), [&] {
      return left == wish::ahead ? here_.take_shared() : here_.take_travelling();
    });
    if (t == nullptr) break;
    found[n++] = t;
    made += bytes_made(*t);
  }
  const std::size_t sent =
      n == 0 ? 0 : send_tokens(from, std::span(found.data(), n), here_.network_worker());
  if (sent != 0) {
    {
      const std::lock_guard lock(mutex_);
      counts_of_.given += sent;
    }
    return shelf_.somebody_asks();
  }
  // What was shelved after the other had looked.
  if (send_from_shelf(from, here_.network_worker())) return shelf_.somebody_asks();
  shelf_.somebody_asks();
  if (left == wish::none) return mail_.say(from, kind::nothing, {});
  waits(from);
  // What is just being pushed may be missed: it is asked for once more when it is needed.
  if (left == wish::ahead) return here_.ask_everybody_soon();
  here_.ask_everybody();
  // Pushed before the wish was seen, by somebody who may never push again; or shelved. Partner:
  // feed().
  detail::task* const late =
      next_to_send(here_.network_worker(), [&] { return here_.take_travelling(); });
  if (late != nullptr) {
    (void)feed_with(from, *late, here_.network_worker());
  } else {
    (void)send_from_shelf(from, here_.network_worker());
  }
}

void stealing::waits(node_id node) {
  const std::lock_guard lock(wishes_);
  if (std::find(waiting_.begin(), waiting_.end(), node) == waiting_.end())
    retry_without_memory([&] { waiting_.push_back(node); });  // it asks nobody else
  wanted_.add(hunger::wishes);
}

bool stealing::feed_with(node_id node, detail::task& token, detail::worker& frames) {
  // Before it is sent: who has got it may wish for more at once.
  const bool waited = no_longer_waits(node);
  detail::task* const one = &token;
  if (send_tokens(node, std::span(&one, 1), frames) == 0) {
    if (waited) waits(node);
    return false;
  }
  const std::lock_guard lock(mutex_);
  ++counts_of_.given;
  return true;
}

// The tokens are not the caller's afterwards. Returns how many are sent; for want of memory the
// others stay here.
std::size_t stealing::send_tokens(node_id to, std::span<detail::task* const> tokens,
                                  detail::worker& frames) {
  writer out;
  std::size_t gone = 0;   // of the tokens
  std::size_t whole = 0;  // bytes of `out`: those that are gone, and not posted
  std::size_t sent = 0;
  const auto post = [&] {
    post_counted(mail_, counts_, to, kind::tokens, out.bytes());
    whole = 0;
    sent = gone;
  };
  try {
    out.add(here_.load());
    while (gone != tokens.size()) {
      detail::task& t = *tokens[gone];
      pack_token(out, t, mail_.self());
      data_.goes_away(t, to, frames, calls_away::trip::as_token);
      ++gone;
      whole = out.size();
      if (whole > answer_bytes_max && gone != tokens.size()) {
        post();
        out = writer();
        out.add(here_.load());
      }
    }
    post();
  } catch (const std::bad_alloc&) {
    if (whole != 0) stay(reader(out.bytes().first(whole)), frames);
    for (detail::task* const t : tokens.subspan(gone)) put_back(here_, *t, frames);
  }
  return sent;
}

// A task that is on the shelf, to a node that has asked for one, which is then not waiting any
// more.
bool stealing::send_from_shelf(node_id to, detail::worker& frames) {
  writer out;
  try {
    out.add(here_.load());
    if (!shelf_.pass_on(out, to)) return false;
  } catch (const std::bad_alloc&) {
    return false;  // nothing has been taken
  }
  const bool waited = no_longer_waits(to);  // as in feed_with()
  bool sent = true;
  try {
    post_counted(mail_, counts_, to, kind::tokens, out.bytes());
  } catch (const std::bad_alloc&) {
    sent = false;
    stay(reader(out.bytes()), frames);
    if (waited) waits(to);
  }
  // Off the shelf; not before it counts as sent again, or is here.
  counts_.received.fetch_add(1, std::memory_order_seq_cst);
  return sent;
}

// What would have been sent as kind::tokens is as good here.
void stealing::stay(reader tokens, detail::worker& frames) {
  (void)tokens.take<std::uint32_t>();  // the load
  while (!tokens.empty()) {
    const reader token = tokens;
    detail::task* back = nullptr;
    try {
      back = data_.come_back(frames, tokens);
    } catch (const std::bad_alloc&) {
      // Of no call: that has been there all the time.
      tokens = skip_token(token);
      give_up_packed(frames, token);
      here_.fail(std::current_exception());
    }
    if (back != nullptr) put_back(here_, *back, frames);
  }
}

void stealing::feed(detail::worker& w) {
  bool gave = false;
  if (const std::optional<node_id> to = who_is_fed()) {
    detail::task* const t = next_to_send(w, [&] { return here_.take_travelling_from(w); });
    if (t != nullptr) gave = feed_with(*to, *t, w);
  }
  gave |= shelf_.fill(w);
  // Shelved, then looked for wishes. Partner: on_steal(), which records a wish and then looks at
  // the shelf.
  if (settings_.how != balancing::sender && wanted_.is_for(hunger::wishes)) {
    if (const std::optional<node_id> to = who_is_fed()) gave |= send_from_shelf(*to, w);
  }
  if (!wanted_.is_for(hunger::wishes | hunger::shelf)) return;
  // Nobody waits for its next push.
  if (settings_.how == balancing::sender && !wanted_.is_for(hunger::shelf))
    return w.deque.ask_later(ask_after);
  // The next push may have something for the next one. Where the oldest task stays on this node,
  // not before that is gone; thieves of this node who take it ask again themselves.
  const bool blocked = !gave && settings_.how != balancing::sender && w.deque.has_shared();
  blocked ? w.deque.ask_at_oldest() : w.deque.ask();
}

std::optional<node_id> stealing::who_is_fed() {
  if (settings_.how == balancing::sender) {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) return std::nullopt;
    if (data_.awaited_calls() >= calls_away_max * mail_.members().begun()) return std::nullopt;
    return unasked_.next(time_.now_ns());
  }
  const std::lock_guard lock(wishes_);
  if (waiting_.empty()) return std::nullopt;
  return waiting_.front();
}

void stealing::take_back(reader r) {
  stay(r, here_.network_worker());
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
    if (to == mail_.self()) return put_back(here_, *t, here_.network_worker());
    if (!data_.prepare(*t, here_.network_worker())) continue;
    made += bytes_made(*t);
    // It goes another time.
    if (send_tokens(to, std::span(&t, 1), here_.network_worker()) == 0) return;
    const std::lock_guard lock(mutex_);
    ++counts_of_.given;
  }
}

}  // namespace strata::cluster
