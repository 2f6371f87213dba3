// SPDX-License-Identifier: Apache-2.0
// Transfers for the program (strata/transfer.hpp): one that is in progress is tested, waited for,
// alone or with others, and given up.
#include "strata/transfer.hpp"

#include <exception>
#include <new>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "messages/messenger.hpp"
#include "strata/detail/worker.hpp"
#include "strata/error.hpp"

namespace strata {

using messages::request;

void transfer::release::operator()(request* r) const noexcept {
  const detail::uninterrupted guard;
  if (!r->is_done() && !r->messenger->cancel(*r)) {
    r->messenger->recall(*r);
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
  // In a loop it may be all that this worker does. From outside the messenger may end meanwhile.
  if (detail::this_worker().owner != nullptr && request_->messenger->is_far(*request_))
    request_->messenger->look_now_and_then();
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
  if (request_->is_done()) return false;  // its messenger may have ended as well
  if (!request_->messenger->cancel(*request_)) return false;
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

}  // namespace strata
