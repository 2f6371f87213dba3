// SPDX-License-Identifier: Apache-2.0
// Mailboxes: EARTH's non-deterministic merge of messages from many senders.
#pragma once
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <type_traits>
#include <vector>

#include "strata/detail/address.hpp"
#include "strata/detail/value_room.hpp"
#include "strata/global_ptr.hpp"
#include "strata/slot.hpp"

namespace strata {

namespace detail {
class held_items;
class mailbox_access;
}  // namespace detail

/// Items of any size, dropped in from anywhere, retrieved on the node where the mailbox lives. One
/// signal is sent for each item, after the item is there. Any number of fibers, tasks and threads
/// may use it at the same time. It must outlive its use, so it usually is a frame variable.
///
/// Visibility: who retrieves an item sees what was done before it was dropped in, and so does what
/// the mailbox's slot enables; between nodes that is the item (docs/memory-model.md).
///
/// Nothing bounds what it holds but the program: whoever drops an item in does not wait for whoever
/// retrieves one, who may wait for all of them together (the slot's count says for how many).
/// `--strata-stats` prints how much the mailboxes of each node of a job hold, and held at most.
/// Senders that are to wait send messages between endpoints (strata/message.hpp), which have room.
class mailbox {
 public:
  /// A mailbox on the calling node that signals `arrived` for each item (EARTH's INIT_MAILBOX). The
  /// slot usually has count 1 and reset 1. Throws misuse_error outside a runtime.
  explicit mailbox(slot_ptr arrived);
  /// What it holds is dropped.
  ~mailbox();
  mailbox(const mailbox&) = delete;
  mailbox& operator=(const mailbox&) = delete;

  /// Items that wait; another thread may change that at once. On the mailbox's node, any thread,
  /// also outside the runtime. Holds a lock for an instant; never suspends.
  [[nodiscard]] std::size_t size() const;

 private:
  friend class detail::mailbox_access;
  // Returns the address of the slot to signal.
  slot_ptr take_in(const void* item, std::size_t bytes);
  friend void drop_in(global_ptr<mailbox> box, const void* item, std::size_t bytes);
  friend std::size_t retrieve_item(mailbox& box, void* item, std::size_t room);

  const node_id_t home_;
  const slot_ptr arrived_;
  const std::shared_ptr<detail::held_items> account_;  // of its runtime
  mutable std::mutex mutex_;                           // held for a copy only
  std::deque<std::vector<std::byte>> items_;
};

/// Copies `bytes` bytes into the mailbox, then signals its slot (EARTH's DROP_IN). Blocks and
/// throws as sync(); std::bad_alloc, too.
void drop_in(global_ptr<mailbox> box, const void* item, std::size_t bytes);

/// The same for a value. An address does not compile (local_address).
template <class T>
void drop_in(global_ptr<mailbox> box, const T& item) {
  static_assert(std::is_trivially_copyable_v<T>, "only trivially copyable values can travel");
  static_assert(detail::refuse_addresses<T>());
  drop_in(box, std::addressof(item), sizeof(T));
}

/// Takes one item out, copies it to `item`, and returns its size in bytes (EARTH's RETRIEVE_ITEM,
/// which does not say the size). Which one is up to the runtime; today the one that came first.
/// Throws misuse_error, and leaves the item there, when `room` is too small; when the mailbox is
/// empty; or on another node than the mailbox's.
std::size_t retrieve_item(mailbox& box, void* item, std::size_t room);

/// The same for a value. The item must have T's size: a larger one throws misuse_error and stays, a
/// smaller one throws misuse_error and is lost.
template <class T>
T retrieve_item(mailbox& box) {
  static_assert(std::is_trivially_copyable_v<T>, "only trivially copyable values can travel");
  static_assert(detail::refuse_addresses<T>());
  return detail::value_by<T>([&](T& item) {
    if (retrieve_item(box, std::addressof(item), sizeof(T)) != sizeof(T))
      throw misuse_error("mailbox: the item is smaller than the type it is retrieved as");
  });
}

}  // namespace strata
