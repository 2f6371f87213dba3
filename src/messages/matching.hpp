// SPDX-License-Identifier: Apache-2.0
// Which receive gets which message: the oldest receive that a message fits, and the oldest message
// that fits a receive, each found by hashing however many there are. A pattern may leave source or
// tag open, so there is one index for each shape of pattern. (Requirement P13; the order is MPI's,
// MPI-4.0 section 3.5.)
#pragma once
#include <array>
#include <cstdint>
#include <memory>
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
    if (indexes_ == nullptr) indexes_ = std::make_unique<indexes>();
    if (only_ != nullptr) enter(*std::exchange(only_, nullptr));
    enter(e);
  }
  void remove(Entry& e) noexcept {
    if (only_ == &e) {
      only_ = nullptr;
      return;
    }
    (*indexes_)[e.wanted.shape()].remove(e);
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
    if (indexed_ == 0) return nullptr;
    Entry* oldest = nullptr;
    for (unsigned shape = 0; shape < pattern_shapes; ++shape) {
      if ((*indexes_)[shape].empty()) continue;
      const pattern key = message.seen_as(shape);
      Entry* const e =
          (*indexes_)[shape].first(key.hash(), [&](const Entry& x) { return x.wanted == key; });
      if (e != nullptr && (oldest == nullptr || e->order < oldest->order)) oldest = e;
    }
    if (oldest != nullptr) remove(*oldest);
    return oldest;
  }
  template <class F>
  void for_each(F&& f) {
    if (only_ != nullptr) return f(*only_);
    if (indexed_ == 0) return;
    for (auto& index : *indexes_) index.for_each(f);
  }

 private:
  void enter(Entry& e) {
    (*indexes_)[e.wanted.shape()].append(e, e.wanted.hash());
    ++indexed_;
  }

  // A thread that waits at its own endpoint, as most do, is alone there, and found without hashing.
  Entry* only_ = nullptr;
  std::size_t indexed_ = 0;
  std::uint64_t next_order_ = 0;
  // An entry is in one of them only, so all use the same links. Made when two wait for the first
  // time: the state of an endpoint comes out of a distant cache where there are many.
  using indexes = std::array<match_index<Entry, 0>, pattern_shapes>;
  std::unique_ptr<indexes> indexes_;
};

// Calls f with an integral constant for each shape.
template <class F>
void for_each_shape(F&& f) {
  [&]<unsigned... Shape>(std::integer_sequence<unsigned, Shape...>) {
    (f(std::integral_constant<unsigned, Shape>()), ...);
  }
  (std::make_integer_sequence<unsigned, pattern_shapes>());
}

// Messages that wait for a receive. Entry has `pattern from() const` and `match_links<Entry>
// links[4]`. All of them are in one list, for receives that leave everything open; they are entered
// into the index of another shape from the first pattern of that shape on. Not thread-safe.
template <class Entry>
class waiting_messages {
 public:
  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
  [[nodiscard]] std::size_t size() const noexcept { return count_; }

  void add(Entry& e) {
    for_each_used([&](auto shape) { this->template enter<shape>(e); });
    all_.append(e);
    ++count_;
  }
  void remove(Entry& e) noexcept {
    for_each_used([&](auto shape) { std::get<shape - 1>(*indexes_).remove(e); });
    all_.remove(e);
    --count_;
  }
  // The oldest that fits; it stays. Null: none.
  [[nodiscard]] Entry* find(const pattern& wanted) {
    // Few need not be found by hashing, nor do those of who takes whatever comes.
    if (all_.empty() || wanted.fits(all_.first->from())) return all_.first;
    if (count_ == 1) return nullptr;
    Entry* found = nullptr;
    for_each_shape([&](auto shape) {
      if constexpr (shape != 0) {
        if (wanted.shape() != shape) return;
        if (!is_used(shape)) {
          if (indexes_ == nullptr) indexes_ = std::make_unique<indexes>();  // nothing else throws
          used_ |= 1U << shape;
          all_.for_each([&](Entry& e) { this->template enter<shape>(e); });
        }
        found = std::get<shape - 1>(*indexes_).first(
            wanted.hash(), [&](const Entry& e) { return e.from().seen_as(shape) == wanted; });
      }
    });
    return found;
  }
  template <class F>
  void for_each(F&& f) {
    all_.for_each(f);
  }

 private:
  using indexes = std::tuple<match_index<Entry, 1>, match_index<Entry, 2>, match_index<Entry, 3>>;

  [[nodiscard]] bool is_used(unsigned shape) const noexcept { return (used_ >> shape & 1U) != 0; }
  template <class F>
  void for_each_used(F&& f) {
    if (used_ == 0) return;
    for_each_shape([&](auto shape) {
      if constexpr (shape != 0) {
        if (is_used(shape)) f(shape);
      }
    });
  }
  template <unsigned Shape>
  void enter(Entry& e) {
    std::get<Shape - 1>(*indexes_).append(e, e.from().seen_as(Shape).hash());
  }

  match_list<Entry, 0> all_;
  std::size_t count_ = 0;
  unsigned used_ = 0;
  std::unique_ptr<indexes> indexes_;
};

}  // namespace strata::messages
