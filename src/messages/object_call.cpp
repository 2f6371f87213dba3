// SPDX-License-Identifier: Apache-2.0
// Calls on a named node whose arguments or results are of any size, at home.
#include "strata/detail/object_call.hpp"

#include <utility>

#include "strata/detail/worker.hpp"

namespace strata::detail {

object_call_at_home::object_call_at_home(const task_type& kind, object_bytes arguments,
                                         bool large_result)
    : task{&kind}, trip_(this_worker(), std::move(arguments), large_result) {}

void object_call_at_home::begin(std::uint16_t node) {
  call_on(node, *this, trip_.behind());
  trip_.forget_arguments();
}

std::span<const std::byte> object_call_at_home::wait() {
  await();
  if (error_ != nullptr) std::rethrow_exception(std::exchange(error_, nullptr));
  return trip_.result();
}

void object_call_at_home::pack(const task& t, std::uint16_t here, std::byte* out) {
  static_cast<const object_call_at_home&>(t).trip_.pack_head(t, here, out);
}

void object_call_at_home::take_behind(task& t, std::span<const std::byte> result) noexcept {
  static_cast<object_call_at_home&>(t).trip_.keep_result(result);
}

void object_call_at_home::accept(task& t, const std::exception_ptr& error, const std::byte*) {
  auto& self = static_cast<object_call_at_home&>(t);
  self.error_ = error;
  self.join_.complete(no_worker);
}

}  // namespace strata::detail
