// SPDX-License-Identifier: Apache-2.0
// Arguments and results of any size: both ends of a call, and of a token that is taken.
#include "strata/detail/object_trip.hpp"

#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "messages/current_messenger.hpp"
#include "messages/large_values.hpp"
#include "messages/messenger.hpp"
#include "sched/scheduler.hpp"
#include "strata/call.hpp"
#include "strata/detail/thread_core.hpp"
#include "strata/error.hpp"
#include "strata/message.hpp"
#include "strata/remote_thread.hpp"

namespace strata::detail {
namespace {

using messages::awaited_bytes;
using messages::large_value;

node_id_t home_of(const object_head& head) { return global_address::from_bits(head.home).node(); }

// ---- made at home, by who makes the call ----

std::shared_ptr<large_value> large_value_of(std::uint64_t number) {
  if (auto found = messages::messenger_here()->large_values->find(number)) return found;
  throw error("a call that is not awaited any more");
}

void send_arguments(std::uint64_t number, endpoint_id to, std::uint64_t bytes) {
  const std::shared_ptr<large_value> p = large_value_of(number);
  if (p->arguments.size() != bytes) refuse_object_bytes("they are not as many as was said");
  // Nobody asks twice: when they have gone, they need no memory here.
  const object_bytes arguments = std::exchange(p->arguments, {});
  if (p->only_arguments) messages::messenger_here()->large_values->leave(number);
  endpoint().send(to, 0, arguments);
}

// Of a token that nobody can begin.
void forget_arguments(std::uint64_t number) {
  messages::messenger_here()->large_values->leave(number);
}

// `by` makes the call.
endpoint_id make_room(std::uint64_t number, std::uint64_t bytes, node_id_t by) {
  const std::shared_ptr<large_value> p = large_value_of(number);
  if (p->result) refuse_object_bytes("they were announced before");
  return p->result.emplace(bytes, by).at();
}

// ---- by who makes it ----

received_bytes fetched(const object_head& head) {
  const node_id_t home = home_of(head);
  awaited_bytes arguments(head.bytes, home);
  call<send_arguments>(on_node{home}, head.large_value, arguments.at(), head.bytes);
  arguments.wait();
  return std::move(arguments.bytes());
}

// Else they would keep their node from leaving.
void nobody_asks_for(const object_head& head) {
  if (head.bytes <= travelling_bytes_max) return;
  const on_node home{home_of(head)};
  for (;;) {
    try {
      return call<forget_arguments>(home, head.large_value);
    } catch (const std::bad_alloc&) {
      this_thread::yield();  // others may give some back
    } catch (const remote_error&) {
      this_thread::yield();  // there, too
    } catch (...) {
      return;  // nor is anybody there, or the job has ended
    }
  }
}

void pack(const object_head& head, std::byte* out) { std::memcpy(out, &head, sizeof(head)); }

}  // namespace

void refuse_object_bytes(const char* why) {
  throw serialization_error("the bytes of a call do not make its arguments or its result: " +
                            std::string(why));
}

std::size_t bytes_behind_head(const std::byte* head) noexcept {
  object_head h;
  std::memcpy(&h, head, sizeof(h));
  return h.bytes <= travelling_bytes_max ? h.bytes : 0;
}

void kept_bytes::keep(std::span<const std::byte> from) noexcept {
  try {
    bytes_ = received_bytes(from);
  } catch (...) {
    refused_ = std::current_exception();
  }
}

received_bytes& kept_bytes::get() {
  if (refused_ != nullptr) std::rethrow_exception(refused_);
  return bytes_;
}

// ---- at home ----

object_trip::object_trip(const worker& w, object_bytes arguments, bool large_result)
    : bytes_(arguments.size()), arguments_(std::move(arguments)) {
  const bool are_asked_for = bytes_ > travelling_bytes_max;
  if (!are_asked_for && !large_result) return;
  large_value_ = std::make_unique<messages::held_large_value>(w);
  if (are_asked_for) (*large_value_)->arguments = std::exchange(arguments_, {});
}

object_trip::~object_trip() = default;

void object_trip::pack_head(const task& home, std::uint16_t here, std::byte* out) const {
  pack({.home = global_address(here, &home).bits(),
        .large_value = large_value_ != nullptr ? large_value_->number() : 0,
        .bytes = bytes_},
       out);
}

std::span<const std::byte> object_trip::result() {
  if (large_value_ == nullptr || !(*large_value_)->result) return result_.get().all();
  awaited_bytes& large = *(*large_value_)->result;
  large.wait();
  return large.bytes().all();
}

leaving_arguments::leaving_arguments(const worker& w, object_bytes arguments)
    : bytes_(arguments.size()), arguments_(std::move(arguments)) {
  if (bytes_ <= travelling_bytes_max) return;
  large_value_ = std::make_unique<messages::held_large_value>(w);
  (*large_value_)->arguments = std::exchange(arguments_, {});
  (*large_value_)->only_arguments = true;
}

leaving_arguments::~leaving_arguments() = default;

void leaving_arguments::pack_head(std::uint16_t here, std::byte* out) noexcept {
  pack({.home = global_address(here, nullptr).bits(),
        .large_value = large_value_ != nullptr ? large_value_->number() : 0,
        .bytes = bytes_},
       out);
  if (large_value_ != nullptr) large_value_->stays();
}

void leaving_arguments::give_up(worker& w, const std::byte* head) noexcept {
  object_head h;
  std::memcpy(&h, head, sizeof(h));
  messages::messenger_of(w)->large_values->leave(h.large_value);
}

// ---- where it is made ----

object_visitor::object_visitor(const task_type& kind, const std::byte* head) noexcept
    : task{&kind} {
  std::memcpy(&head_, head, sizeof(head_));
}

task* object_visitor::unpack(worker& w, const std::byte* head, const task_type& kind) {
  return ::new (w.frames.allocate(sizeof(object_visitor))) object_visitor(kind, head);
}

void object_visitor::abandon(task& t, worker& w) {
  auto& self = static_cast<object_visitor&>(t);
  std::destroy_at(&self);
  w.frames.deallocate(&self, sizeof(object_visitor));
}

object_visitor object_visitor::taken_out_of(task& t) {
  object_visitor mine(std::move(static_cast<object_visitor&>(t)));
  abandon(t, this_worker());
  return mine;
}

void object_visitor::take_behind(task& t, std::span<const std::byte> arguments) noexcept {
  static_cast<object_visitor&>(t).arguments_.keep(arguments);
}

received_bytes object_visitor::arguments() {
  received_bytes& here = arguments_.get();
  if (head_.bytes > travelling_bytes_max) return fetched(head_);
  if (here.all().size() != head_.bytes) refuse_object_bytes("they are not as many as was said");
  return std::move(here);
}

bool object_visitor::attempt(object_bytes (*make)(received_bytes), object_bytes& result) {
  received_bytes given;
  try {
    given = arguments();
  } catch (const node_lost_error&) {
    return false;
  }
  result = make(std::move(given));
  if (result.size() <= travelling_bytes_max) return true;
  try {
    messages::send_result(messages::room_for_result(head_, result.size()), result);
  } catch (const node_lost_error&) {
    return false;
  }
  result.clear();
  return true;
}

void object_visitor::serve(task& t, object_bytes (*make)(received_bytes)) {
  object_visitor mine = taken_out_of(t);
  object_bytes result;
  std::exception_ptr error;
  try {
    // Else whoever called hears of the loss without us, and of nothing else.
    if (!mine.attempt(make, result)) return;
  } catch (...) {
    error = std::current_exception();
  }
  give_back_result(global_address::from_bits(mine.head_.home), error, result.data(), result.size());
}

void object_visitor::begin(task& t, void (*start)(received_bytes)) {
  object_visitor mine = taken_out_of(t);
  std::exception_ptr error;
  try {
    return start(mine.arguments());
  } catch (...) {
    error = std::current_exception();
  }
  this_worker().owner->fail(std::move(error));
  nobody_asks_for(mine.head_);
}

}  // namespace strata::detail

namespace strata::messages {

endpoint_id room_for_result(const strata::detail::object_head& head, std::uint64_t bytes) {
  const on_node home{strata::detail::home_of(head)};
  return call<strata::detail::make_room>(home, head.large_value, bytes, node_id());
}

void send_result(endpoint_id room, std::span<const std::byte> result) {
  try {
    endpoint().send(room, 0, result);
  } catch (const endpoint_closed_error&) {
    // It is there for as long as the call is awaited.
    strata::detail::refuse_object_bytes("they are more than was said");
  }
}

}  // namespace strata::messages
