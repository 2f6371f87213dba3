// SPDX-License-Identifier: Apache-2.0
#include "strata/mailbox.hpp"

#include <cstring>
#include <string>

#include "fibers/mailbox_access.hpp"
#include "sched/held_items.hpp"
#include "sched/scheduler.hpp"

namespace strata {

namespace {

// With a guard: who counts stays the same meanwhile.
unsigned who_counts_items() noexcept {
  const detail::worker& w = detail::this_worker();
  return w.owner != nullptr ? detail::held_items::of_worker(w.id) : detail::held_items::nobody;
}

}  // namespace

mailbox::mailbox(slot_ptr arrived)
    : home_(strata::node_id()),
      arrived_(arrived),
      account_(detail::this_worker().owner->in_mailboxes) {}

mailbox::~mailbox() {
  if (items_.empty()) return;
  std::size_t bytes = 0;
  for (const auto& item : items_) bytes += item.size();
  const detail::uninterrupted guard;
  account_->go(items_.size(), bytes, who_counts_items());
}

std::size_t mailbox::size() const {
  const detail::uninterrupted guard;
  const std::lock_guard lock(mutex_);
  return items_.size();
}

void drop_in(global_ptr<mailbox> box, const void* item, std::size_t bytes) {
  detail::worker& w = detail::this_worker();
  if (box.node() != w.node || w.owner == nullptr)
    return detail::remote_drop_in(w, box.where(), item, bytes);
  detail::check_somewhere("the global_ptr to a mailbox", box.where().address());
  sync(static_cast<mailbox*>(box.where().address())->take_in(item, bytes));
}

slot_ptr detail::mailbox_access::take_in(void* box, const void* item, std::size_t bytes) {
  return static_cast<mailbox*>(box)->take_in(item, bytes);
}

slot_ptr mailbox::take_in(const void* item, std::size_t bytes) {
  // Copied outside the lock: dropping in costs the others one pointer.
  const auto* first = static_cast<const std::byte*>(item);
  std::vector<std::byte> copy(first, first + bytes);
  // Read before the item is visible: who takes it may end the frame that holds the mailbox.
  const slot_ptr arrived = arrived_;
  const detail::uninterrupted guard;
  const std::lock_guard lock(mutex_);
  items_.push_back(std::move(copy));
  account_->come(bytes, who_counts_items());
  return arrived;
}

std::size_t retrieve_item(mailbox& box, void* item, std::size_t room) {
  if (const node_id_t here = node_id(); here != box.home_) {
    throw misuse_error("mailbox of node " + std::to_string(box.home_) + " retrieved on node " +
                       std::to_string(here));
  }
  const detail::uninterrupted guard;
  const std::lock_guard lock(box.mutex_);
  if (box.items_.empty()) throw misuse_error("mailbox: retrieve_item() from an empty mailbox");
  const std::vector<std::byte>& first = box.items_.front();
  const std::size_t bytes = first.size();
  if (bytes > room) {
    throw misuse_error("mailbox: an item of " + std::to_string(bytes) +
                       " bytes does not fit into " + std::to_string(room));
  }
  if (bytes != 0) std::memcpy(item, first.data(), bytes);
  box.items_.pop_front();
  box.account_->go(1, bytes, who_counts_items());
  return bytes;
}

}  // namespace strata
