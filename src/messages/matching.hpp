// SPDX-License-Identifier: Apache-2.0
// Which receive gets which message: the oldest receive that a message fits, and the oldest message
// that fits a receive, each found by hashing however many there are. A pattern may leave source or
// tag open, so there is one index for each shape of pattern. (Requirement P13; the order is MPI's,
// MPI-4.0 section 3.5.)
#pragma once
#include <array>
#include <cstdint>
#include <tuple>
#include <utility>

#include "messages/match_index.hpp"
#include "strata/message.hpp"

namespace strata::messages {

// Bit 0: the source is given; bit 1: the tag is given.
inline constexpr unsigned pattern_shapes = 4;

struct pattern {
  endpoint_id source;  // none: any
  message_tag tag = any_tag;

  [[nodiscard]] unsigned shape() const noexcept {
    return (source ? 1U : 0U) | (tag != any_tag ? 2U : 0U);
  }
  // What a message of this source and tag looks like to patterns of that shape.
  [[nodiscard]] pattern seen_as(unsigned shape) const noexcept {
    return {(shape & 1U) != 0 ? source : endpoint_id(), (shape & 2U) != 0 ? tag : any_tag};
  }
  [[nodiscard]] std::uint64_t hash() const noexcept {
    std::uint64_t h = (source.bits() + 0x9E37'79B9'7F4A'7C15U * (std::uint64_t{tag} + 1));
    h ^= h >> 32;
    h *= 0xD6E8'FEB8'6659'FD93U;
    return h ^ (h >> 32);
  }
  // As that of a receive.
  [[nodiscard]] bool fits(const pattern& message) const noexcept {
    return (!source || source == message.source) && (tag == any_tag || tag == message.tag);
  }
  friend bool operator==(const pattern&, const pattern&) noexcept = default;
};

// Receives that wait for a message. Entry has `pattern wanted`, `std::uint64_t order` and
// `match_links<Entry> links[1]`. Not thread-safe.
template <class Entry>
class posted_receives {
 public:
  [[nodiscard]] bool empty() const noexcept { return only_ == nullptr && indexed_ == 0; }
  void add(Entry& e) {
    e.order = next_order_++;
    if (empty()) {
      only_ = &e;
      return;
    }
    if (only_ != nullptr) enter(*std::exchange(only_, nullptr));
    enter(e);
  }
  void remove(Entry& e) noexcept {
    if (only_ == &e) {
      only_ = nullptr;
      return;
    }
    indexes_[e.wanted.shape()].remove(e);
    --indexed_;
  }
  // The one that is there, where there is only one.
  [[nodiscard]] Entry* only() const noexcept { return only_; }
  // Takes it out.
  void remove_only() noexcept { only_ = nullptr; }
  // Takes out the oldest that a message of this source and tag fits; null: none.
  [[nodiscard]] Entry* take(const pattern& message) {
    if (only_ != nullptr)
      return only_->wanted.fits(message) ? std::exchange(only_, nullptr) : nullptr;
    Entry* oldest = nullptr;
    for (unsigned shape = 0; shape < pattern_shapes; ++shape) {
      if (indexes_[shape].empty()) continue;
      const pattern key = message.seen_as(shape);
      Entry* const e =
          indexes_[shape].first(key.hash(), [&](const Entry& x) { return x.wanted == key; });
      if (e != nullptr && (oldest == nullptr || e->order < oldest->order)) oldest = e;
    }
    if (oldest != nullptr) remove(*oldest);
    return oldest;
  }
  template <class F>
  void for_each(F&& f) {
    if (only_ != nullptr) return f(*only_);
    for (auto& index : indexes_) index.for_each(f);
  }

 private:
  void enter(Entry& e) {
    indexes_[e.wanted.shape()].append(e, e.wanted.hash());
    ++indexed_;
  }

  // A thread that waits at its own endpoint, as most do, is alone there, and found without hashing.
  Entry* only_ = nullptr;
  std::size_t indexed_ = 0;
  // An entry is in one of them only, so all use the same links.
  std::array<match_index<Entry, 0>, pattern_shapes> indexes_;
  std::uint64_t next_order_ = 0;
};

// Calls f with an integral constant for each shape.
template <class F>
void for_each_shape(F&& f) {
  [&]<unsigned... Shape>(std::integer_sequence<unsigned, Shape...>) {
    (f(std::integral_constant<unsigned, Shape>()), ...);
  }
  (std::make_integer_sequence<unsigned, pattern_shapes>());
}

// Messages that wait for a receive. Entry has `pattern from` and `match_links<Entry> links[4]`.
// Messages are entered into the index of a shape from the first pattern of that shape on, and into
// that of the fully open one always. Not thread-safe.
template <class Entry>
class waiting_messages {
 public:
  [[nodiscard]] bool empty() const noexcept { return size() == 0; }
  [[nodiscard]] std::size_t size() const noexcept {
    return only_ != nullptr ? 1 : std::get<0>(indexes_).size();
  }

  void add(Entry& e) {
    if (empty()) {
      only_ = &e;
      return;
    }
    if (only_ != nullptr) enter_all(*std::exchange(only_, nullptr));
    enter_all(e);
  }
  void remove(Entry& e) noexcept {
    if (only_ == &e) {
      only_ = nullptr;
      return;
    }
    for_each_shape([&](auto shape) {
      if (is_used(shape)) std::get<shape>(indexes_).remove(e);
    });
  }
  // The oldest that fits; it stays. Null: none.
  [[nodiscard]] Entry* find(const pattern& wanted) {
    Entry* found = nullptr;
    if (empty()) return found;
    if (only_ != nullptr) return wanted.fits(only_->from) ? only_ : nullptr;
    for_each_shape([&](auto shape) {
      if (wanted.shape() != shape) return;
      if (!is_used(shape)) {
        used_ |= 1U << shape;
        std::get<0>(indexes_).for_each([&](Entry& e) { this->template enter<shape>(e); });
      }
      found = std::get<shape>(indexes_).first(
          wanted.hash(), [&](const Entry& e) { return e.from.seen_as(shape) == wanted; });
    });
    return found;
  }
  template <class F>
  void for_each(F&& f) {
    if (only_ != nullptr) return f(*only_);
    std::get<0>(indexes_).for_each(f);
  }

 private:
  [[nodiscard]] bool is_used(unsigned shape) const noexcept { return (used_ >> shape & 1U) != 0; }
  template <unsigned Shape>
  void enter(Entry& e) {
    std::get<Shape>(indexes_).append(e, e.from.seen_as(Shape).hash());
  }
  void enter_all(Entry& e) {
    for_each_shape([&](auto shape) {
      if (is_used(shape)) this->template enter<shape>(e);
    });
  }

  // The first of all need not be found by hashing.
  Entry* only_ = nullptr;

  std::tuple<match_index<Entry, 0>, match_index<Entry, 1>, match_index<Entry, 2>,
             match_index<Entry, 3>>
      indexes_;
  unsigned used_ = 1;
};

}  // namespace strata::messages
