// SPDX-License-Identifier: Apache-2.0
// Which receive gets which message: the oldest receive that a message fits, and the oldest message
// that fits a receive, each found by hashing however many there are. A pattern names one endpoint,
// the endpoints of one node, or leaves the source open, and may leave the tag open, so there is one
// index for each shape of pattern. (Requirement P13; the order is MPI's, MPI-4.0 section 3.5.)
//
// The runtime's own messages to a program's endpoints have tags above message_tag_max. They fit
// only who asks for their tag, so no receive of the program takes them.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <tuple>
#include <utility>

#include "messages/match_index.hpp"
#include "strata/message.hpp"

namespace strata::messages {

// Bit 0: the tag is given. Above it, the source: 0 open, 1 an endpoint, 2 a node.
inline constexpr unsigned pattern_shapes = 6;
// What leaves everything open.
inline constexpr unsigned open_shape = 0;
// From here on the source is a node. Who never asks for one has no index for these.
inline constexpr unsigned shapes_by_node = 4;

struct pattern {
  endpoint_id source;  // none: any; may be any_endpoint_on() a node
  message_tag tag = any_tag;

  [[nodiscard]] bool is_by_node() const noexcept { return source.is_any_on_node(); }
  [[nodiscard]] unsigned shape() const noexcept {
    const unsigned sources = is_by_node() ? 2U : source ? 1U : 0U;
    return 2 * sources + (tag != any_tag ? 1U : 0U);
  }
  // Of a message: whether it is the runtime's own.
  [[nodiscard]] bool is_internal() const noexcept { return tag > message_tag_max; }
  // What a message of this source and tag looks like to patterns of that shape. Those that leave
  // the tag open are never equal to what an internal one looks like.
  [[nodiscard]] pattern seen_as(unsigned shape) const noexcept {
    const message_tag its_tag = (shape & 1U) != 0 || is_internal() ? tag : any_tag;
    if (shape >= shapes_by_node) return {any_endpoint_on(source.node()), its_tag};
    return {shape >= 2 ? source : any_endpoint, its_tag};
  }
  [[nodiscard]] std::uint64_t hash() const noexcept {
    std::uint64_t h = (source.bits() + 0x9E37'79B9'7F4A'7C15U * (std::uint64_t{tag} + 1));
    h ^= h >> 32;
    h *= 0xD6E8'FEB8'6659'FD93U;
    return h ^ (h >> 32);
  }
  // As that of a receive.
  [[nodiscard]] bool fits(const pattern& message) const noexcept {
    return (tag == any_tag ? !message.is_internal() : tag == message.tag) &&
           (!source || source == message.source ||
            (is_by_node() && source.node() == message.source.node()));
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
    if (empty()) {
      e.order = next_order_++;
      only_ = &e;
      return;
    }
    make_indexes_for(e);  // nothing else throws
    e.order = next_order_++;
    if (only_ != nullptr) enter(*std::exchange(only_, nullptr));
    enter(e);
  }
  void remove(Entry& e) noexcept {
    if (only_ == &e) {
      only_ = nullptr;
      return;
    }
    const unsigned shape = e.wanted.shape();
    if (shape == open_shape) {
      indexes_->open.remove(e);
    } else {
      indexes_->of(shape).remove(e);
    }
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
    Entry* oldest = message.is_internal() ? nullptr : indexes_->open.first;
    const unsigned shapes = indexes_->by_node != nullptr ? pattern_shapes : shapes_by_node;
    for (unsigned shape = open_shape + 1; shape < shapes; ++shape) {
      const table& those = indexes_->of(shape);
      if (those.empty()) continue;
      Entry* const e = those.first(message.seen_as(shape));
      if (e != nullptr && (oldest == nullptr || e->order < oldest->order)) oldest = e;
    }
    if (oldest != nullptr) remove(*oldest);
    return oldest;
  }
  // Of its indexes, which are as large as they have ever had to be. It is empty.
  void give_memory_back() noexcept { indexes_.reset(); }
  template <class F>
  void for_each(F&& f) {
    if (only_ != nullptr) return f(*only_);
    if (indexed_ == 0) return;
    indexes_->open.for_each(f);
    for (table& those : indexes_->usual) those.for_each(f);
    if (indexes_->by_node == nullptr) return;
    for (table& those : *indexes_->by_node) those.for_each(f);
  }

 private:
  struct key_of {
    const pattern& operator()(const Entry& e) const noexcept { return e.wanted; }
  };
  // An entry is in one of them only, so all use the same links.
  using table = match_index<Entry, 0, key_of>;
  using tables_by_node = std::array<table, pattern_shapes - shapes_by_node>;
  struct indexes {
    match_list<Entry, 0> open;
    std::array<table, shapes_by_node - 1> usual;
    std::unique_ptr<tables_by_node> by_node;  // made when the first one asks for a node

    // Of the others than the open one, and those by node only where they have been made.
    [[nodiscard]] table& of(unsigned shape) noexcept {
      return shape < shapes_by_node ? usual[shape - 1] : (*by_node)[shape - shapes_by_node];
    }
  };

  void make_indexes_for(const Entry& e) {
    if (indexes_ == nullptr) indexes_ = std::make_unique<indexes>();
    const bool by_node = e.wanted.is_by_node() || (only_ != nullptr && only_->wanted.is_by_node());
    if (by_node && indexes_->by_node == nullptr)
      indexes_->by_node = std::make_unique<tables_by_node>();
  }
  void enter(Entry& e) noexcept {
    const unsigned shape = e.wanted.shape();
    if (shape == open_shape) {
      indexes_->open.append(e);
    } else {
      indexes_->of(shape).append(e);
    }
    ++indexed_;
  }

  // A thread that waits at its own endpoint, as most do, is alone there, and found without hashing.
  Entry* only_ = nullptr;
  std::size_t indexed_ = 0;
  std::uint64_t next_order_ = 0;
  // Made when two wait for the first time: the state of an endpoint comes out of a distant cache
  // where there are many.
  std::unique_ptr<indexes> indexes_;
};

// Calls f with an integral constant for each shape that has an index.
template <class F>
void for_each_indexed_shape(F&& f) {
  [&]<unsigned... Before>(std::integer_sequence<unsigned, Before...>) {
    (f(std::integral_constant<unsigned, Before + 1>()), ...);
  }
  (std::make_integer_sequence<unsigned, pattern_shapes - 1>());
}

// Messages that wait for a receive. Entry has `pattern as_sent() const` and `match_links<Entry>
// links[pattern_shapes]`. All of them are in one list, for receives that leave everything open;
// they are entered into the index of another shape from the first pattern of that shape on. Not
// thread-safe.
template <class Entry>
class waiting_messages {
 public:
  [[nodiscard]] bool empty() const noexcept { return all_.empty(); }
  // The oldest, the newest; null: none.
  [[nodiscard]] Entry* first() const noexcept { return all_.first; }
  [[nodiscard]] Entry* last() const noexcept { return all_.last; }
  // Counts them: for people and tests.
  [[nodiscard]] std::size_t size() const noexcept {
    std::size_t n = 0;
    for (const Entry* e = all_.first; e != nullptr; e = e->links[open_shape].next) ++n;
    return n;
  }

  void add(Entry& e) noexcept {
    for_each_used([&](auto shape) { this->template table_of<shape>().append(e); });
    all_.append(e);
  }
  void remove(Entry& e) noexcept {
    for_each_used([&](auto shape) { this->template table_of<shape>().remove(e); });
    all_.remove(e);
  }
  // All of them, in their order. None is here then, nor any memory of the indexes.
  [[nodiscard]] match_list<Entry, open_shape> take_all() noexcept {
    used_ = 0;
    usual_.reset();
    by_node_.reset();
    return std::exchange(all_, {});
  }
  // The oldest that fits; it stays. Null: none.
  [[nodiscard]] Entry* find(const pattern& wanted) {
    // Few need not be found by hashing, nor do those of who takes whatever comes.
    if (all_.empty() || wanted.fits(all_.first->as_sent())) return all_.first;
    if (all_.first == all_.last) return nullptr;
    const unsigned wanted_shape = wanted.shape();
    // The first is internal. There are few of these: one for each round of a group that is made.
    if (wanted_shape == open_shape) return first_of_the_program();
    Entry* found = nullptr;
    for_each_indexed_shape([&](auto shape) {
      if (wanted_shape != shape) return;
      if (!is_used(shape)) this->template begin_to_use<shape>();
      found = this->template table_of<shape>().first(wanted);
    });
    return found;
  }
  template <class F>
  void for_each(F&& f) {
    all_.for_each(f);
  }
  // The oldest of which f(entry) is true, looked at one after the other; null: none.
  template <class F>
  [[nodiscard]] Entry* find_if(F&& f) const {
    Entry* e = all_.first;
    while (e != nullptr && !f(*e)) e = e->links[open_shape].next;
    return e;
  }

 private:
  [[nodiscard]] Entry* first_of_the_program() const noexcept {
    Entry* e = all_.first;
    while (e != nullptr && e->as_sent().is_internal()) e = e->links[open_shape].next;
    return e;
  }
  template <unsigned Shape>
  struct key_of {
    pattern operator()(const Entry& e) const noexcept { return e.as_sent().seen_as(Shape); }
  };
  template <unsigned Shape>
  using table = match_index<Entry, Shape, key_of<Shape>>;
  using usual_tables = std::tuple<table<1>, table<2>, table<3>>;
  using tables_by_node = std::tuple<table<4>, table<5>>;

  template <unsigned Shape>
  [[nodiscard]] table<Shape>& table_of() noexcept {
    if constexpr (Shape < shapes_by_node) {
      return std::get<table<Shape>>(*usual_);
    } else {
      return std::get<table<Shape>>(*by_node_);
    }
  }
  template <unsigned Shape>
  void begin_to_use() {
    // Nothing else throws.
    if constexpr (Shape < shapes_by_node) {
      if (usual_ == nullptr) usual_ = std::make_unique<usual_tables>();
    } else {
      if (by_node_ == nullptr) by_node_ = std::make_unique<tables_by_node>();
    }
    used_ |= 1U << Shape;
    all_.for_each([&](Entry& e) { this->template table_of<Shape>().append(e); });
  }
  [[nodiscard]] bool is_used(unsigned shape) const noexcept { return (used_ >> shape & 1U) != 0; }
  template <class F>
  void for_each_used(F&& f) {
    if (used_ == 0) return;
    for_each_indexed_shape([&](auto shape) {
      if (is_used(shape)) f(shape);
    });
  }

  match_list<Entry, open_shape> all_;
  unsigned used_ = 0;
  std::unique_ptr<usual_tables> usual_;
  std::unique_ptr<tables_by_node> by_node_;
};

}  // namespace strata::messages
