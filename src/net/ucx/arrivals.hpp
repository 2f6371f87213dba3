// SPDX-License-Identifier: Apache-2.0
// What has arrived, or has ended, and waits for poll(): UCX tells from within a call of its own,
// which is no place to handle messages, since handlers send and take locks.
#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "net/wire.hpp"

namespace strata::net::ucx {

enum class news : unsigned char {
  message,
  loss,           // of h.source, after all that it sent
  block_arrived,  // from h.source, whole or not; the offset is its number
  block_given,    // to h.source
};

struct arrival {
  news what;
  bool whole;
  header h;
  std::size_t offset;       // of the copy
  const std::byte* inside;  // of held
  void* held;               // UCX's memory, which goes back to it; null: copied
  std::size_t bytes = 0;    // of a block
};

// In order of arrival.
class arrivals {
 public:
  [[nodiscard]] bool empty() const noexcept { return list_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return list_.size(); }
  // Of memory: what has come of empty messages takes some, too.
  [[nodiscard]] std::size_t bytes() const noexcept {
    return list_.size() * sizeof(arrival) + held_bytes_ + copies_.size();
  }
  [[nodiscard]] const arrival& operator[](std::size_t i) const noexcept { return list_[i]; }

  void copy(const header& h, std::span<const std::byte> payload) {
    list_.push_back({news::message, true, h, copies_.size(), nullptr, nullptr, 0});
    copies_.insert(copies_.end(), payload.begin(), payload.end());
  }
  void hold(const header& h, std::span<const std::byte> payload, void* whole) {
    list_.push_back({news::message, true, h, 0, payload.data(), whole, 0});
    held_bytes_ += payload.size();
  }
  void lose(node_id peer) {
    header h{};
    h.source = peer;
    list_.push_back({news::loss, true, h, 0, nullptr, nullptr, 0});
  }
  // what: one of the two blocks.
  void end(news what, node_id peer, std::uint64_t number, bool whole, std::size_t bytes) {
    header h{};
    h.source = peer;
    list_.push_back({what, whole, h, number, nullptr, nullptr, bytes});
  }

  [[nodiscard]] std::span<const std::byte> payload(const arrival& a) const noexcept {
    if (a.held != nullptr) return {a.inside, a.h.length};
    return std::span(copies_).subspan(a.offset, a.h.length);
  }

  // What is held must have gone back.
  void clear() {
    list_.clear();
    held_bytes_ = 0;
    copies_.clear();
    if (copies_.capacity() > kept_bytes_max) copies_ = {};
  }

 private:
  static constexpr std::size_t kept_bytes_max = std::size_t{1} << 20;
  std::vector<arrival> list_;
  std::vector<std::byte> copies_;
  std::size_t held_bytes_ = 0;
};

}  // namespace strata::net::ucx
