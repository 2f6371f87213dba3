// SPDX-License-Identifier: Apache-2.0
#include "net/inproc/inbox.hpp"

#include <chrono>
#include <utility>

#include "strata/detail/check.hpp"

namespace strata::net::inproc {
namespace {

std::size_t cost_of(const header& h) noexcept { return sizeof h + h.length; }

}  // namespace

inbox::inbox(node_id nodes, std::size_t credits_bytes)
    : credits_bytes_(credits_bytes), senders_(nodes) {}

// ---- any other node ----

send_outcome inbox::put(header h, std::span<const std::byte> head,
                        std::span<const std::byte> body) {
  h.length = static_cast<std::uint32_t>(head.size() + body.size());
  STRATA_CHECK(h.length <= payload_bytes_max, h.length);
  const std::lock_guard lock(mutex_);
  if (!is_open_) return send_outcome::lost;
  sender& from = senders_[h.source];
  if (from.bytes != 0 && from.bytes + cost_of(h) > credits_bytes_) {
    from.refused = true;
    return send_outcome::would_block;
  }
  item made{h};
  made.payload.reserve(h.length);
  made.payload.assign(head.begin(), head.end());
  made.payload.insert(made.payload.end(), body.begin(), body.end());
  made.h.sequence = from.next_sequence++;
  from.bytes += cost_of(h);
  items_.push_back(std::move(made));
  call_somebody();
  return send_outcome::sent;
}

void inbox::put_end(node_id peer, const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (is_closed_) return;
  item end{};
  end.h.source = peer;
  end.ended_by = why;
  items_.push_back(std::move(end));
  call_somebody();
}

void inbox::tell_sender() {
  const std::lock_guard lock(mutex_);
  room_called_ = true;
  room_.notify_one();
}

void inbox::call_somebody() {
  if (attendants_ != 0) return;
  if (!has_stand_in_) {
    receiver_.notify_one();
    return;
  }
  // It attends from now on.
  has_stand_in_ = false;
  stand_in_called_ = true;
  ++attendants_;
  stand_in_.notify_one();
}

void inbox::call_somebody_for_rest() {
  if (!items_.empty()) call_somebody();
}

// ---- the node whose inbox it is ----

void inbox::open() {
  const std::lock_guard lock(mutex_);
  STRATA_CHECK(!is_open_, senders_.size());
  is_open_ = true;
}

std::vector<node_id> inbox::close() {
  const std::lock_guard lock(mutex_);
  is_open_ = false;
  is_closed_ = true;
  items_.clear();
  std::vector<node_id> refused;
  for (std::size_t n = 0; n < senders_.size(); ++n) {
    senders_[n].bytes = 0;
    if (std::exchange(senders_[n].refused, false)) refused.push_back(static_cast<node_id>(n));
  }
  return refused;
}

void inbox::take(std::vector<item>& all, std::size_t messages_max) {
  const std::lock_guard lock(mutex_);
  while (all.size() < messages_max && !items_.empty()) {
    all.push_back(std::move(items_.front()));
    items_.pop_front();
  }
}

std::vector<node_id> inbox::give_back(std::span<const item> all) {
  std::vector<node_id> refused;
  const std::lock_guard lock(mutex_);
  for (const item& i : all) {
    if (!i.ended_by.empty()) continue;
    sender& from = senders_[i.h.source];
    from.bytes -= cost_of(i.h);
    if (from.refused && from.bytes <= credits_bytes_ / 2) {
      from.refused = false;
      refused.push_back(i.h.source);
    }
  }
  return refused;
}

// ---- who sleeps ----

void inbox::wait(std::unique_lock<std::mutex>& lock, std::condition_variable& until,
                 std::int64_t timeout_ns, bool& called) {
  const bool is_receiver = &until == &receiver_;
  const auto is_over = [&] {
    return called || (is_receiver && attendants_ == 0 && !items_.empty());
  };
  if (!is_over()) {
    if (timeout_ns < 0) {
      until.wait(lock, is_over);
    } else {
      // On this clock, as ThreadSanitizer knows of no other.
      (void)until.wait_until(
          lock, std::chrono::system_clock::now() + std::chrono::nanoseconds(timeout_ns), is_over);
    }
    ++wakes_;
  }
  called = false;
}

void inbox::wait_for_messages(std::int64_t timeout_ns) {
  std::unique_lock lock(mutex_);
  wait(lock, receiver_, timeout_ns, receiver_called_);
}

void inbox::wake_receiver() {
  const std::lock_guard lock(mutex_);
  receiver_called_ = true;
  receiver_.notify_one();
}

void inbox::wait_for_room(std::int64_t timeout_ns) {
  std::unique_lock lock(mutex_);
  wait(lock, room_, timeout_ns, room_called_);
}

void inbox::attended() {
  const std::lock_guard lock(mutex_);
  ++attendants_;
}

bool inbox::unattended() {
  const std::lock_guard lock(mutex_);
  return --attendants_ == 0 && !items_.empty();
}

transport::stand_in_outcome inbox::stand_in(os::futex_word& own, std::uint32_t expected) {
  using outcome = transport::stand_in_outcome;
  std::unique_lock lock(mutex_);
  // Who comes back may have left something to be found here, of which the receiver was not told.
  if (stand_in_dismissed_) {
    call_somebody_for_rest();
    return outcome::not_here;
  }
  const auto is_free = [&] {
    // Acquire: why it has changed. Partner: rouse_stand_in()'s caller, before it calls.
    return own.load(std::memory_order_acquire) == expected && !stand_in_dismissed_;
  };
  if (!is_free()) {
    call_somebody_for_rest();
    return outcome::left;
  }
  if (attendants_ == 0 && !items_.empty()) {
    ++attendants_;
    return outcome::is_to_poll;
  }
  has_stand_in_ = true;
  stand_in_.wait(lock, [&] { return stand_in_called_ || !is_free(); });
  ++wakes_;
  has_stand_in_ = false;
  return std::exchange(stand_in_called_, false) ? outcome::is_to_poll : outcome::left;
}

void inbox::rouse_stand_in() {
  const std::lock_guard lock(mutex_);
  stand_in_.notify_one();
}

void inbox::dismiss_stand_in() {
  const std::lock_guard lock(mutex_);
  stand_in_dismissed_ = true;
  stand_in_.notify_one();
}

std::uint64_t inbox::wakes() const {
  const std::lock_guard lock(mutex_);
  return wakes_;
}

}  // namespace strata::net::inproc
