// SPDX-License-Identifier: Apache-2.0
// First in, first out. Entries are linked into it, so nothing is allocated for them.
#pragma once
namespace strata::messages {

// One place in one list.
template <class Entry>
struct match_links {
  Entry* next;
  Entry* previous;
};

// Entry has `match_links<Entry> links[]`; this list uses links[Which]. Not thread-safe.
template <class Entry, unsigned Which>
struct match_list {
  Entry* first = nullptr;
  Entry* last = nullptr;

  [[nodiscard]] bool empty() const noexcept { return first == nullptr; }
  void append(Entry& e) noexcept {
    match_links<Entry>& at = e.links[Which];
    at.next = nullptr;
    at.previous = last;
    (last != nullptr ? last->links[Which].next : first) = &e;
    last = &e;
  }
  void remove(Entry& e) noexcept {
    match_links<Entry>& at = e.links[Which];
    (at.previous != nullptr ? at.previous->links[Which].next : first) = at.next;
    (at.next != nullptr ? at.next->links[Which].previous : last) = at.previous;
  }
  // All of the other one, which is of no use then.
  void append_all(match_list& others) noexcept {
    others.for_each([this](Entry& e) { append(e); });
  }
  // Calls f(entry) for all, in their order. f may remove the entry.
  template <class F>
  void for_each(F&& f) {
    for (Entry* e = first; e != nullptr;) {
      Entry* const next = e->links[Which].next;
      f(*e);
      e = next;
    }
  }
};

}  // namespace strata::messages
