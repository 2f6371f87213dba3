// SPDX-License-Identifier: Apache-2.0
// strata/message.hpp for the program: what it may ask for, and who is asked.
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "messages/messenger.hpp"
#include "messages/office.hpp"
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
  r.office = from.office;
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
  r->office->send(*r);
  return r.release();
}

void prepare_receive(request& r, action what, messages::port& at, endpoint_id mine,
                     endpoint_id from, message_tag tag) {
  check_caller();
  check_tag_received(tag);
  at.office->check_source(from);
  r.what = what;
  r.office = at.office;
  r.mine = &at;
  r.wanted = {from, tag};
  r.info.target = mine;
}

// A receive that ends before its caller goes on.
message_info receive_now(request& r) {
  r.waits_at_once = detail::this_worker().owner != nullptr && !r.office->is_far(r);
  r.office->receive(r);
  if (!r.is_done()) r.wait();
  return r.result();
}

message_info finish(request& r) {
  r.wait();
  return r.result();
}

}  // namespace

// ---- transfers ----

void transfer::release::operator()(request* r) const noexcept {
  const detail::uninterrupted guard;
  if (!r->is_done() && !r->office->cancel(*r)) {
    r->office->recall(*r);
    r->wait();
  }
  delete r;
}

transfer& transfer::operator=(transfer&& other) noexcept {
  request_ = std::move(other.request_);
  return *this;
}
transfer::~transfer() = default;

bool transfer::test() const {
  if (request_ == nullptr) throw misuse_error("test() for a transfer that is not valid()");
  if (request_->is_done()) return true;
  const detail::uninterrupted guard;
  // In a loop it may be all that this worker does. From outside the office may end meanwhile.
  if (detail::this_worker().owner != nullptr && request_->office->is_far(*request_))
    request_->office->look_now_and_then();
  return request_->is_done();
}

message_info transfer::wait() {
  if (request_ == nullptr) throw misuse_error("wait() for a transfer that is not valid()");
  const detail::uninterrupted guard;
  request_->wait();
  return std::exchange(request_, nullptr)->result();
}

std::optional<message_info> transfer::wait_until_ns(std::int64_t deadline_ns) {
  if (request_ == nullptr)
    throw misuse_error("wait_for() or wait_until() for a transfer that is not valid()");
  const detail::uninterrupted guard;
  if (!request_->wait(deadline_ns)) return std::nullopt;
  return std::exchange(request_, nullptr)->result();
}

bool transfer::cancel() {
  if (request_ == nullptr) throw misuse_error("cancel() for a transfer that is not valid()");
  const detail::uninterrupted guard;
  if (request_->is_done()) return false;  // its office may have ended as well
  if (!request_->office->cancel(*request_)) return false;
  request_.reset();
  return true;
}

namespace {
struct several {
  std::span<request* const> requests;
  const void* address;
  // Also where the wait throws: nobody looks for that address any more.
  void withdraw() const noexcept {
    for (request* const r : requests) {
      if (r != nullptr) r->withdraw(address);
    }
  }
  // With the queue of `address` locked.
  static bool all_wait(void* self) {
    const auto& s = *static_cast<several*>(self);
    for (request* const r : s.requests) {
      if (r != nullptr && !r->announce_to(s.address)) return false;
    }
    return true;
  }
};
}  // namespace

std::optional<std::size_t> detail::wait_any_until_ns(std::span<transfer> transfers,
                                                     std::int64_t deadline_ns) {
  const uninterrupted guard;
  std::vector<request*> requests;
  bool any = false;
  for (const transfer& t : transfers) {
    requests.push_back(t.request_.get());
    any |= t.valid();
  }
  if (!any)
    throw misuse_error("wait_any(), or with a limit, for transfers of which none is valid()");
  several all{requests, requests.data()};
  const auto ended = [&]() -> std::size_t {
    for (std::size_t i = 0; i < requests.size(); ++i) {
      if (requests[i] != nullptr && requests[i]->is_done()) return i;
    }
    return requests.size();
  };
  std::size_t found = ended();
  bool in_time = true;
  try {
    while (found == requests.size() && in_time) {
      in_time = park({.what = "one of several messages",
                      .address = all.address,
                      .still = &several::all_wait,
                      .argument = &all,
                      .deadline_ns = deadline_ns,
                      .kinds = request::kind_of_caller()}) != unparked::timed_out;
      found = ended();
    }
  } catch (...) {
    all.withdraw();
    throw;
  }
  all.withdraw();
  if (found == requests.size()) return std::nullopt;
  return found;
}

std::size_t wait_any(std::span<transfer> transfers) {
  return *detail::wait_any_until_ns(transfers, detail::parking::never);
}

std::vector<message_info> wait_all(std::span<transfer> transfers) {
  std::vector<message_info> ended;
  std::exception_ptr first;
  try {
    ended.resize(transfers.size());
  } catch (const std::bad_alloc&) {
    first = std::current_exception();
  }
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    try {
      if (!transfers[i].valid()) continue;
      const message_info one = transfers[i].wait();
      if (i < ended.size()) ended[i] = one;
    } catch (...) {
      if (first == nullptr) first = std::current_exception();
    }
  }
  if (first != nullptr) std::rethrow_exception(first);
  return ended;
}

// ---- endpoints ----

endpoint::endpoint() {
  const detail::uninterrupted guard;
  port_ =
      &messages::office_or_refusal("an endpoint can only be made within a runtime (runtime::run())")
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
  if (port_ != nullptr) port_->office->close(id_, *port_);
}

void endpoint::close_announced() noexcept {
  const detail::uninterrupted guard;
  port_->office->close(id_, *port_, messages::outcome::announced);
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
  if (mine.office->send_to_waiting(id_, to, tag, bytes)) return;
  request r;
  prepare_send(r, action::send, mine, id_, to, tag, bytes);
  r.office->send(r);
  finish(r);
}

void endpoint::send(endpoint_id to, message_tag tag, std::vector<std::byte>&& bytes) {
  const detail::uninterrupted guard;
  messages::port& mine = open_port();
  check_tag_sent(tag);
  check_send(to);
  request r;
  prepare_send(r, action::send, mine, id_, to, tag, bytes);
  // Who takes them has them for good; an error says that nobody has.
  r.whole = &bytes;
  r.office->send(r);
  finish(r);
  bytes = std::vector<std::byte>();
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
  mine.office->flush(to);
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

transfer endpoint::start_receive(std::span<std::byte> buffer, endpoint_id from, message_tag tag) {
  const detail::uninterrupted guard;
  auto r = std::make_unique<request>();
  prepare_receive(*r, action::receive, open_port(), id_, from, tag);
  r->into = buffer;
  r->office->receive(*r);
  return transfer(r.release());
}

transfer endpoint::start_only_receive(std::span<std::byte> buffer, endpoint_id from) {
  const detail::uninterrupted guard;
  auto r = std::make_unique<request>();
  prepare_receive(*r, action::receive, open_port(), id_, from, any_tag);
  r->into = buffer;
  r->refuses_larger = true;
  r->office->receive(*r);
  return transfer(r.release());
}

message endpoint::exchange_internal(endpoint_id to, std::span<const std::byte> bytes,
                                    endpoint_id from, message_tag tag) {
  const detail::uninterrupted guard;
  transfer sends(begin_send(action::send, open_port(), id_, to, tag, bytes));
  request r;
  message m;
  prepare_receive(r, action::receive, open_port(), id_, from, any_tag);
  r.wanted.tag = tag;
  r.whole = &m.content;
  static_cast<message_info&>(m) = receive_now(r);
  sends.wait();
  return m;
}

transfer endpoint::start_receive_message(std::vector<std::byte>& content, endpoint_id from,
                                         message_tag tag) {
  const detail::uninterrupted guard;
  auto r = std::make_unique<request>();
  prepare_receive(*r, action::receive, open_port(), id_, from, tag);
  r->whole = &content;
  r->office->receive(*r);
  return transfer(r.release());
}

std::optional<message_info> endpoint::probe(endpoint_id from, message_tag tag) {
  const detail::uninterrupted guard;
  messages::port& p = open_port();
  check_tag_received(tag);
  p.office->check_source(from);
  std::optional<message_info> found = p.office->probe(p, id_, {from, tag});
  if (!found) p.office->look_now_and_then();
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
