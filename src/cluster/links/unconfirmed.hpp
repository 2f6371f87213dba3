// SPDX-License-Identifier: Apache-2.0
// What one neighbour has given to its connection to the other, and what has come over it: when the
// connection ends, what has not come is said by another way, in the same order, and nothing twice.
// Where nodes share one network only, nobody keeps anything.
//
// The receiver counts messages and says how many have come, every now and then; the sender keeps
// copies of those that it has not heard of. No message carries a number: a connection keeps order,
// and what it has carried whole when it ends are the first so many. Source: the
// cumulative acknowledgement of RFC 9293 (TCP), counted in messages.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>

#include "cluster/words/codec.hpp"
#include "cluster/words/message_copy.hpp"

namespace strata::cluster {

// The sender's side of one connection. By one thread at a time, but bytes().
class unconfirmed {
 public:
  // It is given to the connection. Where it throws, m is still whole.
  void keep(message_copy&& m) {
    const std::size_t cost = cost_of(m);
    kept_.push_back(std::move(m));
    set_bytes(bytes() + cost);
  }
  // The connection had no room for it, or has ended.
  [[nodiscard]] message_copy take_last() noexcept {
    message_copy m = std::move(kept_.back());
    kept_.pop_back();
    set_bytes(bytes() - cost_of(m));
    return m;
  }
  // `count` have come, of all that were given; more may have been said before. Throws malformed.
  void confirm(std::uint64_t count) {
    if (count > given()) throw malformed("it has got what was never sent");
    for (; confirmed_ < count; ++confirmed_) {
      set_bytes(bytes() - cost_of(kept_.front()));
      kept_.pop_front();
    }
  }
  // Some that were given have not been confirmed.
  [[nodiscard]] bool keeps_any() const noexcept { return !kept_.empty(); }
  void clear() noexcept {
    kept_.clear();
    set_bytes(0);
  }
  // For another connection, to which nothing has been given.
  void begin_anew() noexcept {
    clear();
    confirmed_ = confirmed_before_ = 0;
    silent_beats_ = 0;
  }
  // Called at every beat, at which the other end confirms what has come. True: it has not confirmed
  // anything for two whole beats, though there was something to confirm.
  [[nodiscard]] bool is_silent() noexcept {
    const bool confirms = kept_.empty() || confirmed_ != confirmed_before_;
    silent_beats_ = confirms ? 0 : silent_beats_ + 1;
    confirmed_before_ = confirmed_;
    return silent_beats_ > silent_beats_max;
  }
  [[nodiscard]] std::uint64_t given() const noexcept { return confirmed_ + kept_.size(); }
  // Any thread. A hint to whoever does not change it.
  [[nodiscard]] std::size_t bytes() const noexcept {
    return bytes_.load(std::memory_order_relaxed);
  }

 private:
  static std::size_t cost_of(const message_copy& m) noexcept { return m.payload.size() + sizeof m; }
  void set_bytes(std::size_t n) noexcept { bytes_.store(n, std::memory_order_relaxed); }
  static constexpr unsigned silent_beats_max = 2;

  std::deque<message_copy> kept_;
  std::atomic<std::size_t> bytes_{0};
  std::uint64_t confirmed_ = 0, confirmed_before_ = 0;
  unsigned silent_beats_ = 0;
};

// The receiver's.
class come_so_far {
 public:
  // One more. True: it is time to confirm.
  [[nodiscard]] bool add(std::size_t bytes) noexcept {
    ++count_;
    bytes_ += bytes + sizeof(message_copy);
    return bytes_ >= bytes_at_once;
  }
  // What is to be said now.
  [[nodiscard]] std::uint64_t confirm() noexcept {
    bytes_ = 0;
    confirmed_ = count_;
    return count_;
  }
  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  [[nodiscard]] bool is_confirmed() const noexcept { return confirmed_ == count_; }

 private:
  // A sender keeps about so much for each neighbour, and what is under way.
  static constexpr std::size_t bytes_at_once = std::size_t{256} << 10;

  std::uint64_t count_ = 0, confirmed_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace strata::cluster
