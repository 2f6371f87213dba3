// SPDX-License-Identifier: Apache-2.0
// Calls whose arguments or results are of any size: both ends.
#include "strata/detail/object_call.hpp"

#include <string>
#include <utility>

#include "messages/messenger.hpp"
#include "messages/parcels.hpp"
#include "sched/scheduler.hpp"
#include "strata/message.hpp"
#include "strata/remote_thread.hpp"

namespace strata::detail {
namespace {

using messages::awaited_bytes;
using messages::parcel;

// ---- made at the caller's, by who makes the call ----

std::shared_ptr<parcel> parcel_of(std::uint64_t number) {
  if (auto found = this_worker().owner->messenger->parcels->find(number)) return found;
  throw error("a call that is not awaited any more");
}

void send_arguments(std::uint64_t number, endpoint_id to, std::uint64_t bytes) {
  const std::shared_ptr<parcel> p = parcel_of(number);
  if (p->arguments.size() != bytes) refuse_object_bytes("they are not as many as was said");
  // Nobody asks twice: when they have gone, they need no memory here.
  const object_bytes arguments = std::exchange(p->arguments, {});
  endpoint().send(to, 0, arguments);
}

endpoint_id make_room(std::uint64_t number, std::uint64_t bytes) {
  const std::shared_ptr<parcel> p = parcel_of(number);
  return p->result.emplace(bytes, p->node).at();
}

// ---- by who makes the call ----

received_bytes fetched(const object_call_head& head) {
  const node_id_t home = global_address::from_bits(head.home).node();
  awaited_bytes arguments(head.bytes, home);
  call<send_arguments>(on_node{home}, head.parcel, arguments.at(), head.bytes);
  arguments.wait();
  return std::move(arguments.bytes());
}

void send_result(const object_call_head& head, const object_bytes& result) {
  const node_id_t home = global_address::from_bits(head.home).node();
  const auto to =
      call<make_room>(on_node{home}, head.parcel, static_cast<std::uint64_t>(result.size()));
  endpoint().send(to, 0, result);
}

}  // namespace

void refuse_object_bytes(const char* why) {
  throw serialization_error("the bytes of a call do not make its arguments or its result: " +
                            std::string(why));
}

object_call_at_home::object_call_at_home(const task_type& kind, object_bytes arguments,
                                         bool large_result)
    : task{&kind}, bytes_(arguments.size()), arguments_(std::move(arguments)) {
  if (large_result || bytes_ > travelling_bytes_max)
    parcel_ = std::make_unique<messages::held_parcel>();
}

object_call_at_home::~object_call_at_home() = default;

void object_call_at_home::begin(std::uint16_t node) {
  if (parcel_ != nullptr) (*parcel_)->node = node;
  if (bytes_ <= travelling_bytes_max) {
    call_on(node, *this, arguments_);
    arguments_ = {};
  } else {
    (*parcel_)->arguments = std::move(arguments_);
    call_on(node, *this);
  }
}

std::span<const std::byte> object_call_at_home::wait() {
  join_.wait();
  if (error_ != nullptr) std::rethrow_exception(std::exchange(error_, nullptr));
  if (parcel_ == nullptr || !(*parcel_)->result) return result_.all();
  awaited_bytes& large = *(*parcel_)->result;
  large.wait();
  return large.bytes().all();
}

void object_call_at_home::pack(const task& t, std::uint16_t here, std::byte* out) {
  const auto& self = static_cast<const object_call_at_home&>(t);
  const object_call_head head{.home = global_address(here, &t).bits(),
                              .parcel = self.parcel_ != nullptr ? self.parcel_->number() : 0,
                              .bytes = self.bytes_};
  std::memcpy(out, &head, sizeof(head));
}

void object_call_at_home::take_behind(task& t, std::span<const std::byte> result) noexcept {
  auto& self = static_cast<object_call_at_home&>(t);
  try {
    self.result_ = received_bytes(result);
  } catch (...) {
    self.error_ = std::current_exception();
  }
}

void object_call_at_home::accept(task& t, const std::exception_ptr& error, const std::byte*) {
  auto& self = static_cast<object_call_at_home&>(t);
  if (error != nullptr) self.error_ = error;
  self.join_.complete(no_worker);
}

void visiting_object_call::take_behind(task& t, std::span<const std::byte> arguments) noexcept {
  auto& self = static_cast<visiting_object_call&>(t);
  try {
    self.arguments_ = received_bytes(arguments);
  } catch (...) {
    self.refused_ = std::current_exception();
  }
}

received_bytes visiting_object_call::arguments() {
  if (refused_ != nullptr) std::rethrow_exception(refused_);
  if (head_.bytes > travelling_bytes_max) return fetched(head_);
  if (arguments_.all().size() != head_.bytes)
    refuse_object_bytes("they are not as many as was said");
  return std::move(arguments_);
}

bool visiting_object_call::attempt(object_bytes (*make)(received_bytes), object_bytes& result) {
  received_bytes given;
  try {
    given = arguments();
  } catch (const node_lost_error&) {
    return false;
  }
  result = make(std::move(given));
  if (result.size() <= travelling_bytes_max) return true;
  try {
    send_result(head_, result);
  } catch (const node_lost_error&) {
    return false;
  }
  result.clear();
  return true;
}

void visiting_object_call::serve(object_bytes (*make)(received_bytes)) {
  object_bytes result;
  std::exception_ptr error;
  try {
    // Else whoever called hears of the loss without us, and of nothing else.
    if (!attempt(make, result)) return;
  } catch (...) {
    error = std::current_exception();
  }
  give_back_result(global_address::from_bits(head_.home), error, result.data(), result.size());
}

}  // namespace strata::detail
