// SPDX-License-Identifier: Apache-2.0
#include "messages/large_values.hpp"

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

std::uint64_t large_value_table::enter(std::shared_ptr<large_value> p) {
  const strata::detail::uninterrupted guard;
  const std::lock_guard lock(lock_);
  large_values_.emplace(next_, std::move(p));
  return next_++;
}

std::shared_ptr<large_value> large_value_table::find(std::uint64_t number) noexcept {
  const strata::detail::uninterrupted guard;
  const std::lock_guard lock(lock_);
  const auto found = large_values_.find(number);
  return found != large_values_.end() ? found->second : nullptr;
}

void large_value_table::leave(std::uint64_t number) noexcept {
  const strata::detail::uninterrupted guard;
  const std::lock_guard lock(lock_);
  large_values_.erase(number);  // held_large_value has it still
}

std::size_t large_value_table::size() noexcept {
  const strata::detail::uninterrupted guard;
  const std::lock_guard lock(lock_);
  return large_values_.size();
}

held_large_value::held_large_value(const strata::detail::worker& w)
    : large_value_(std::make_shared<large_value>()), number_(0) {
  table_ = messenger_or_refusal(
               w, "a call on another node can only be made within a runtime (runtime::run())")
               .large_values;
  number_ = table_->enter(large_value_);
}

}  // namespace strata::messages
