// SPDX-License-Identifier: Apache-2.0
#include "cluster/work/shelving.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "cluster/work/packed_token.hpp"
#include "cluster/work/put_back.hpp"

namespace strata::cluster {
namespace {

// Shelves that one look goes to.
constexpr std::size_t looked_at_max = 8;

}  // namespace

shelving::shelving(mailer& mail, local_node& here, split_phase& data, work_counts& counts,
                   hunger& wanted, shelving_settings settings)
    : mail_(mail),
      here_(here),
      data_(data),
      counts_(counts),
      wanted_(wanted),
      settings_(std::move(settings)),
      shelves_(settings_.offered_max != 0 ? settings_.shelves : nullptr) {}

detail::task* shelving::take(detail::worker& w, node_id& whose, detail::next_take& after) {
  if (shelves_ == nullptr) return nullptr;
  // Those who have left offer nothing.
  const membership& members = mail_.members();
  const std::size_t n = members.nears();
  if (n == 0) {
    whose = mail_.self();
    return take_back(w);
  }
  unsigned next = next_.load(std::memory_order_relaxed);
  // What is wrong with our own shelf some neighbour has done.
  whose = members.near(next % static_cast<unsigned>(n));
  if (detail::task* const t = take_back(w)) return t;
  // Who comes takes nothing before it is known, who leaves nothing any more.
  if (!members.works(mail_.self())) return nullptr;
  for (std::size_t i = 0; i < std::min(n, looked_at_max); ++i, ++next) {
    whose = members.near(next % static_cast<unsigned>(n));
    if (detail::task* const t = take_from(whose, w, after)) {
      if (next != next_.load(std::memory_order_relaxed))
        next_.store(next, std::memory_order_relaxed);
      return t;
    }
  }
  if (n > looked_at_max) next_.store(next, std::memory_order_relaxed);
  return nullptr;
}

detail::task* shelving::take_from(node_id node, detail::worker& w, detail::next_take& after) {
  packed p;
  const net::taken_thing t = shelves_->take(node, p.bytes.data());
  if (t.how == net::take_outcome::empty) return nullptr;
  if (t.how == net::take_outcome::malformed) throw malformed("its shelf holds nonsense");
  reader in(std::span(p.bytes).first(std::min(t.bytes, p.bytes.size())));
  detail::task* const task = data_.unpack(w, in);
  // We are awake, so is_idle() is false until the task has been run. Partner: quiescence.
  counts_.received.fetch_add(1, std::memory_order_seq_cst);
  taken_.fetch_add(1, std::memory_order_relaxed);
  after = {t.next_word, t.next_place};
  try {
    if (t.tell_owner) mail_.post(node, kind::shelf_room, {});
  } catch (const std::bad_alloc&) {
    // It looks again when somebody asks it. The task has been taken, and nobody else has it.
  }
  return task;
}

// ---- this node's own ----

void shelving::attend(bool attended) {
  shelves_->set_attended(attended);
  attended ? wanted_.add(hunger::shelf) : wanted_.remove(hunger::shelf);
}

bool shelving::fill(detail::worker& w) {
  if (shelves_ == nullptr || !wanted_.is_for(hunger::shelf)) return false;
  if (closed_.load(std::memory_order_relaxed)) return false;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  // Whoever holds it is filling the shelf, or taking from it.
  if (!lock.owns_lock()) return false;
  bool filled = false;
  while (shelves_->offered() < settings_.offered_max) {
    detail::task* const t = here_.take_shelvable_from(w);
    if (t == nullptr) {
      // Something that stays here, or is not for shelves, comes first, and will for a while: not
      // every push is to look.
      if (w.deque.has_shared()) attend(false);
      return filled;
    }
    if (!offer(w, t)) {
      put_back(here_, *t, w);
      attend(false);
      return filled;
    }
    filled = true;
  }
  // Full, unless somebody has taken from it just now, who then tells us.
  attend(false);
  return filled;
}

bool shelving::offer(detail::worker& w, detail::task* t) {
  const detail::wire_type& type = *t->type->wire;
  const std::size_t size = packed_bytes(*t);
  if (size > net::shelves::bytes_max) return false;
  std::array<std::byte, net::shelves::bytes_max> bytes;
  pack_token(bytes.data(), *t, mail_.self());
  detail::task* const call = type.accept != nullptr ? t : nullptr;
  // Its result can be here before we are back from offering it.
  try {
    data_.goes_away(*t, mail_.self(), w, calls_away::trip::as_token);
  } catch (const std::bad_alloc&) {
    return false;  // it stays
  }
  // Before it can be taken. Partners: take_from(), take_back() and quiescence.
  counts_.sent.fetch_add(1, std::memory_order_seq_cst);
  const unsigned place = shelves_->offer(std::span(bytes).first(size), settings_.offered_max);
  if (place == net::shelves::places_max) throw malformed("our shelf was filled by somebody else");
  calls_[place] = call;
  ++counts_of_.offered;
  return true;
}

bool shelving::take_from_own(packed& p) {
  const net::taken_thing t = shelves_->take_back(p.bytes.data());
  if (t.how == net::take_outcome::empty) return false;
  if (t.how == net::take_outcome::malformed) throw malformed("it has written on our shelf");
  wanted_.remove(hunger::shelf);
  p.size = std::min(t.bytes, p.bytes.size());
  p.call = std::exchange(calls_[t.place % calls_.size()], nullptr);
  return true;
}

detail::task* shelving::take_back(detail::worker& w) {
  if (!holds_something()) return nullptr;
  packed p;
  {
    const std::lock_guard lock(mutex_);
    if (!take_from_own(p)) return nullptr;
    ++counts_of_.taken_back;
  }
  detail::task* t = p.call;
  if (t == nullptr) {
    reader in(std::span(p.bytes).first(p.size));
    t = data_.unpack(w, in);
  } else if (!data_.comes_back(*t)) {
    t = nullptr;
  }
  // As in take_from().
  counts_.received.fetch_add(1, std::memory_order_seq_cst);
  return t;
}

bool shelving::pass_on(writer& out, node_id to) {
  if (!holds_something()) return false;
  packed p;
  // What has been taken must not be lost for want of memory.
  out.reserve(p.bytes.size());
  {
    const std::lock_guard lock(mutex_);
    if (!take_from_own(p)) return false;
    ++counts_of_.passed_on;
  }
  if (p.call != nullptr) data_.goes_on(*p.call, to);
  out.add_bytes(std::span(p.bytes).first(p.size));
  return true;
}

// ---- from others ----

void shelving::close() {
  if (shelves_ == nullptr) return;
  closed_.store(true, std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);
  attend(false);
}

void shelving::somebody_asks() {
  if (shelves_ == nullptr || closed_.load(std::memory_order_relaxed)) return;
  if (!wanted_.is_for(hunger::shelf)) {
    const std::lock_guard lock(mutex_);
    if (shelves_->offered() >= settings_.offered_max) return;
    attend(true);
  }
  here_.ask_everybody_soon();
}

bool shelving::on_message(node_id, kind k, reader r) {
  if (k != kind::shelf_room) return false;
  r.end();
  if (shelves_ == nullptr) throw malformed("there is no shelf here");
  if (closed_.load(std::memory_order_relaxed)) return true;
  {
    // Waits for fill(), which may be about to say that nobody looks after it.
    const std::lock_guard lock(mutex_);
    attend(true);
  }
  here_.ask_everybody_soon();
  return true;
}

shelving::statistics shelving::counted() const {
  statistics s;
  {
    const std::lock_guard lock(mutex_);
    s = counts_of_;
  }
  s.taken = taken_.load(std::memory_order_relaxed);
  return s;
}

}  // namespace strata::cluster
