// SPDX-License-Identifier: Apache-2.0
// Endpoints for the program (strata/message.hpp): what it may ask for, and who is asked.
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "messages/current_messenger.hpp"
#include "messages/giving_way.hpp"
#include "messages/messenger.hpp"
#include "strata/detail/join.hpp"
#include "strata/message.hpp"
#include "strata/thread_specific.hpp"

namespace strata {

using messages::action;
using messages::request;

namespace {

// Before anything of the request is anywhere: a fiber could not wait for it.
void check_caller() {
  if (detail::this_worker().owner != nullptr) detail::require_stack();
}

[[noreturn, gnu::cold]] void refuse_tag(message_tag tag) {
  if (tag == any_tag) throw misuse_error("any_tag is for receives only");
  throw misuse_error("tag " + std::to_string(tag) +
                     " is the runtime's: a program has those up to " +
                     std::to_string(message_tag_max) + " (message_tag_max)");
}

// The runtime's own messages go by begin_send().
void check_tag_sent(message_tag tag) {
  if (tag > message_tag_max) [[unlikely]]
    refuse_tag(tag);
}
void check_tag_received(message_tag tag) {
  if (tag > message_tag_max && tag != any_tag) [[unlikely]]
    refuse_tag(tag);
}

void check_send(endpoint_id to) {
  if (to.is_any_on_node()) throw misuse_error("any_endpoint_on() is for receives only");
  if (!to) throw misuse_error("a message to no endpoint");
  check_caller();
}

void prepare_send(request& r, action what, messages::port& from, endpoint_id source, endpoint_id to,
                  message_tag tag, std::span<const std::byte> bytes) {
  r.what = what;
  r.messenger = from.messenger;
  r.mine = &from;
  r.from = bytes;
  r.info = {source, to, tag, bytes.size()};
}

request* begin_send(action what, messages::port& from, endpoint_id source, endpoint_id to,
                    message_tag tag, std::span<const std::byte> bytes) {
  const detail::uninterrupted guard;
  auto r = std::make_unique<request>();
  check_send(to);
  prepare_send(*r, what, from, source, to, tag, bytes);
  r->messenger->send(*r);
  return r.release();
}

void prepare_receive(request& r, action what, messages::port& at, endpoint_id mine,
                     endpoint_id from, message_tag tag) {
  check_caller();
  check_tag_received(tag);
  at.messenger->check_source(from);
  r.what = what;
  r.messenger = at.messenger;
  r.mine = &at;
  r.wanted = {from, tag};
  r.info.target = mine;
}

// A receive that ends before its caller goes on.
message_info receive_now(request& r) {
  r.waits_at_once = detail::this_worker().owner != nullptr && !r.messenger->is_far(r);
  r.messenger->receive(r);
  if (!r.is_done()) r.wait();
  return r.result();
}

void finish_send(request& r) {
  r.wait();
  (void)r.result();
  if (r.gives_way) messages::give_way_to_others();
}

}  // namespace

endpoint::endpoint() {
  const detail::uninterrupted guard;
  port_ = &messages::messenger_or_refusal(
               "an endpoint can only be made within a runtime (runtime::run())")
               .open();
  id_ = port_->id;  // nobody else knows it yet
}

endpoint::endpoint(endpoint&& other) noexcept
    : port_(std::exchange(other.port_, nullptr)), id_(std::exchange(other.id_, {})) {}

endpoint& endpoint::operator=(endpoint&& other) noexcept {
  if (this == &other) return *this;
  const endpoint before(std::move(*this));
  port_ = std::exchange(other.port_, nullptr);
  id_ = std::exchange(other.id_, {});
  return *this;
}

endpoint::~endpoint() {
  const detail::uninterrupted guard;
  if (port_ != nullptr) port_->messenger->close(id_, *port_);
}

void endpoint::close_announced() noexcept {
  const detail::uninterrupted guard;
  port_->messenger->close(id_, *port_, messages::outcome::announced);
  port_ = nullptr;
}

messages::port& endpoint::open_port() const {
  if (port_ == nullptr) throw misuse_error("an endpoint that has been moved from");
  return *port_;
}

void endpoint::refuse_size() {
  throw misuse_error("receive_value(): the message is smaller than the value");
}

void detail::refuse_count(std::size_t bytes, std::size_t element_bytes) {
  throw misuse_error("a message of " + std::to_string(bytes) +
                     " bytes is no whole number of elements of " + std::to_string(element_bytes) +
                     " bytes; receive it as what was sent");
}

void endpoint::send(endpoint_id to, message_tag tag, std::span<const std::byte> bytes) {
  const detail::uninterrupted guard;
  messages::port& mine = open_port();
  check_tag_sent(tag);
  check_send(to);
  if (mine.messenger->send_to_waiting(id_, to, tag, bytes)) return;
  request r;
  prepare_send(r, action::send, mine, id_, to, tag, bytes);
  r.messenger->send(r);
  finish_send(r);
}

void endpoint::send(endpoint_id to, message_tag tag, std::vector<std::byte>&& bytes) {
  const detail::uninterrupted guard;
  messages::port& mine = open_port();
  check_tag_sent(tag);
  check_send(to);
  request r;
  // Once it has arrived, its receiver may have freed what `bytes` is part of.
  std::vector<std::byte> content = std::move(bytes);
  try {
    prepare_send(r, action::send, mine, id_, to, tag, content);
    r.whole = &content;
    r.messenger->send(r);
    finish_send(r);
  } catch (...) {
    bytes = std::move(content);
    throw;
  }
}

transfer endpoint::start_send(endpoint_id to, message_tag tag, std::span<const std::byte> bytes) {
  check_tag_sent(tag);
  return transfer(begin_send(action::send, open_port(), id_, to, tag, bytes));
}

transfer endpoint::start_synchronous_send(endpoint_id to, message_tag tag,
                                          std::span<const std::byte> bytes) {
  check_tag_sent(tag);
  return transfer(begin_send(action::send_synchronously, open_port(), id_, to, tag, bytes));
}

void endpoint::flush(endpoint_id to) {
  const detail::uninterrupted guard;
  messages::port& mine = open_port();
  check_send(to);
  mine.messenger->flush(to);
}

message_info endpoint::receive(std::span<std::byte> buffer, endpoint_id from, message_tag tag) {
  const detail::uninterrupted guard;
  request r;
  prepare_receive(r, action::receive, open_port(), id_, from, tag);
  r.into = buffer;
  return receive_now(r);
}

message endpoint::receive_message(endpoint_id from, message_tag tag) {
  const detail::uninterrupted guard;
  request r;
  message m;
  prepare_receive(r, action::receive, open_port(), id_, from, tag);
  r.whole = &m.content;
  static_cast<message_info&>(m) = receive_now(r);
  return m;
}

message_info endpoint::receive_shown(detail::message_look look, endpoint_id from, message_tag tag) {
  const detail::uninterrupted guard;
  request r;
  std::vector<std::byte> fetched;
  messages::onlooker looks{.asked = look};
  prepare_receive(r, action::receive, open_port(), id_, from, tag);
  r.whole = &fetched;
  r.looks = &looks;
  const message_info m = receive_now(r);
  if (!looks.has_looked) looks.look(m, fetched);
  if (looks.thrown != nullptr) std::rethrow_exception(looks.thrown);
  return m;
}

transfer endpoint::start_receive(std::span<std::byte> buffer, endpoint_id from, message_tag tag) {
  const detail::uninterrupted guard;
  auto r = std::make_unique<request>();
  prepare_receive(*r, action::receive, open_port(), id_, from, tag);
  r->into = buffer;
  r->messenger->receive(*r);
  return transfer(r.release());
}

transfer endpoint::start_only_receive(std::span<std::byte> buffer, endpoint_id from) {
  const detail::uninterrupted guard;
  auto r = std::make_unique<request>();
  prepare_receive(*r, action::receive, open_port(), id_, from, any_tag);
  r->into = buffer;
  r->refuses_larger = true;
  r->messenger->receive(*r);
  return transfer(r.release());
}

transfer endpoint::start_internal_send(endpoint_id to, message_tag tag,
                                       std::span<const std::byte> bytes) {
  return transfer(begin_send(action::send, open_port(), id_, to, tag, bytes));
}

message endpoint::receive_internal(endpoint_id from, message_tag tag) {
  const detail::uninterrupted guard;
  request r;
  message m;
  prepare_receive(r, action::receive, open_port(), id_, from, any_tag);
  r.wanted.tag = tag;
  r.whole = &m.content;
  static_cast<message_info&>(m) = receive_now(r);
  return m;
}

transfer endpoint::start_receive_message(std::vector<std::byte>& content, endpoint_id from,
                                         message_tag tag) {
  const detail::uninterrupted guard;
  auto r = std::make_unique<request>();
  prepare_receive(*r, action::receive, open_port(), id_, from, tag);
  r->whole = &content;
  r->messenger->receive(*r);
  return transfer(r.release());
}

std::optional<message_info> endpoint::probe(endpoint_id from, message_tag tag) {
  const detail::uninterrupted guard;
  messages::port& p = open_port();
  check_tag_received(tag);
  p.messenger->check_source(from);
  std::optional<message_info> found = p.messenger->probe(p, id_, {from, tag});
  if (!found) p.messenger->look_now_and_then();
  return found;
}

message_info endpoint::wait_probe(endpoint_id from, message_tag tag) {
  const detail::uninterrupted guard;
  request r;
  prepare_receive(r, action::probe, open_port(), id_, from, tag);
  return receive_now(r);
}

endpoint& this_thread::endpoint() {
  static thread_specific_ptr<strata::endpoint> own;
  if (own.get() == nullptr) own.reset(new strata::endpoint);
  return *own;
}

}  // namespace strata
