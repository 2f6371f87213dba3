// SPDX-License-Identifier: Apache-2.0
#include "messages/parcels.hpp"

#include <mutex>
#include <utility>

#include "messages/current_messenger.hpp"
#include "messages/messenger.hpp"
#include "strata/detail/worker.hpp"

namespace strata::messages {

awaited_bytes::awaited_bytes(std::uint64_t bytes, node_id_t node)
    : bytes_(bytes), arrives_(at_.start_only_receive(bytes_.all(), any_endpoint_on(node))) {}

void awaited_bytes::wait() {
  // It was sent before its sender said so, on the same way: a receive that is still free stays so.
  if (!arrives_.test() && arrives_.cancel())
    strata::detail::refuse_object_bytes("they have not been sent");
  std::size_t come = 0;
  try {
    come = arrives_.wait().bytes;
  } catch (const message_too_large_error&) {
    strata::detail::refuse_object_bytes("they are more than was said");
  }
  if (come != bytes_.all().size())
    strata::detail::refuse_object_bytes("they are fewer than was said");
}

std::uint64_t parcel_table::enter(std::shared_ptr<parcel> p) {
  const strata::detail::uninterrupted guard;
  const std::lock_guard lock(lock_);
  parcels_.emplace(next_, std::move(p));
  return next_++;
}

std::shared_ptr<parcel> parcel_table::find(std::uint64_t number) noexcept {
  const strata::detail::uninterrupted guard;
  const std::lock_guard lock(lock_);
  const auto found = parcels_.find(number);
  return found != parcels_.end() ? found->second : nullptr;
}

void parcel_table::leave(std::uint64_t number) noexcept {
  const strata::detail::uninterrupted guard;
  const std::lock_guard lock(lock_);
  parcels_.erase(number);  // held_parcel has it still
}

std::size_t parcel_table::size() noexcept {
  const strata::detail::uninterrupted guard;
  const std::lock_guard lock(lock_);
  return parcels_.size();
}

held_parcel::held_parcel(const strata::detail::worker& w)
    : parcel_(std::make_shared<parcel>()), number_(0) {
  table_ = messenger_or_refusal(
               w, "a call on another node can only be made within a runtime (runtime::run())")
               .parcels;
  number_ = table_->enter(parcel_);
}

}  // namespace strata::messages
