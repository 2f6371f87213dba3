// SPDX-License-Identifier: Apache-2.0
// First in, first out, by hash: the order among entries of one key is the order in which they
// came. Entries are linked into it, so nothing is allocated for them, and nothing of their keys is
// kept with the links, which are most of a waiting message. (Requirement P13.)
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

#include "messages/match_list.hpp"

namespace strata::messages {

// Entry has `match_links<Entry> links[]`; this index uses links[Which]. Key()(entry) is what the
// entry is found by: it has `hash()` and ==, and stays what it is while the entry is here. Not
// thread-safe.
template <class Entry, unsigned Which, class Key>
class match_index {
 public:
  match_index() = default;
  match_index(const match_index&) = delete;
  match_index& operator=(const match_index&) = delete;

  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
  [[nodiscard]] std::size_t size() const noexcept { return count_; }

  void append(Entry& e) noexcept {
    if (count_ >= entries_for_each * (mask_ + 1)) grow();
    list_of(hash_of(e)).append(e);
    ++count_;
  }

  void remove(Entry& e) noexcept {
    list_of(hash_of(e)).remove(e);
    --count_;
  }

  // The oldest entry with this key, or null.
  template <class Wanted>
  [[nodiscard]] Entry* first(const Wanted& key) const noexcept {
    Entry* e = list_of(key.hash()).first;
    while (e != nullptr && !(Key()(*e) == key)) e = e->links[Which].next;
    return e;
  }

  // Calls f(entry) for all, those of one key in their order. f may remove the entry.
  template <class F>
  void for_each(F&& f) {
    for (std::size_t i = 0; i <= mask_; ++i) lists()[i].for_each(f);
  }

 private:
  using list = match_list<Entry, Which>;
  static constexpr std::size_t entries_for_each = 4;

  static std::uint64_t hash_of(const Entry& e) noexcept { return Key()(e).hash(); }

  // Without memory for that it goes on with longer lists.
  void grow() noexcept {
    const std::size_t n = 2 * (mask_ + 1);
    std::unique_ptr<list[]> more(new (std::nothrow) list[n]);
    if (more == nullptr) return;
    for_each([&](Entry& e) { more[hash_of(e) & (n - 1)].append(e); });
    many_ = std::move(more);
    mask_ = n - 1;
  }
  list* lists() noexcept { return many_ != nullptr ? many_.get() : &one_; }
  list& list_of(std::uint64_t hash) noexcept { return lists()[hash & mask_]; }
  const list& list_of(std::uint64_t hash) const noexcept {
    return (many_ != nullptr ? many_.get() : &one_)[hash & mask_];
  }

  list one_;  // most endpoints have few messages
  std::unique_ptr<list[]> many_;
  std::size_t mask_ = 0;
  std::size_t count_ = 0;
};

}  // namespace strata::messages
