// SPDX-License-Identifier: Apache-2.0
#include "messages/request.hpp"

#include <new>
#include <string>

#include "cluster/work/split_phase.hpp"
#include "context/stack.hpp"
#include "messages/messenger.hpp"
#include "messages/port.hpp"
#include "strata/detail/check.hpp"
#include "strata/detail/join.hpp"
#include "strata/detail/worker.hpp"

namespace strata::messages {

void onlooker::look(const message_info& m, std::span<const std::byte> bytes) noexcept {
  has_looked = true;
  const detail::held_worker here;
  try {
    asked.look(asked.self, m, bytes);
  } catch (...) {
    thrown = std::current_exception();
  }
}

void request::keep_loss() noexcept { loss_ = messenger->loss(); }

void request::finish(outcome o) noexcept {
  note(o);
  // Acquire: the suspended stack. Partners: commit_wait(), or the port's lock of wait_entered().
  std::uintptr_t seen = word_.load(std::memory_order_acquire);
  if ((seen & stack_mark) != 0) {
    // Nobody else changes it any more, and nobody reads it before the stack goes on.
    word_.store(ended, std::memory_order_relaxed);
    return detail::make_ready(*reinterpret_cast<detail::stack*>(seen - stack_mark));
  }
  // Release: what was transferred, and how it ended. Partner: is_done().
  seen = word_.exchange(ended, std::memory_order_acq_rel);
  if ((seen & stack_mark) != 0) {
    detail::make_ready(*reinterpret_cast<detail::stack*>(seen - stack_mark));
  } else if (seen != pending) {
    detail::unpark(reinterpret_cast<const void*>(seen), UINT32_MAX);
  }
}

void request::finish_over() noexcept {
  note(outcome::over);
  // As in finish().
  const std::uintptr_t seen = word_.exchange(ended, std::memory_order_acq_rel);
  if (seen != pending && (seen & stack_mark) == 0)
    detail::unpark(reinterpret_cast<const void*>(seen), UINT32_MAX, by_os_thread);
}

std::uint32_t request::kind_of_caller() noexcept {
  return detail::this_worker().owner != nullptr ? by_task : by_os_thread;
}

bool request::announce_to(const void* address) noexcept {
  std::uintptr_t seen = pending;
  return word_.compare_exchange_strong(seen, reinterpret_cast<std::uintptr_t>(address),
                                       std::memory_order_relaxed) ||
         seen != ended;
}

void request::withdraw(const void* address) noexcept {
  auto seen = reinterpret_cast<std::uintptr_t>(address);
  word_.compare_exchange_strong(seen, pending, std::memory_order_relaxed);
}

// Asked with the address's queue locked: whoever ends it sees the announcement, and finds us.
bool request::must_wait(void* self) {
  return static_cast<request*>(self)->announce_to(&static_cast<request*>(self)->word_);
}

const char* request::what_for() const noexcept {
  return what == action::receive ? "message"
         : what == action::probe ? "message (probe)"
                                 : "room for a message";
}

void request::describe(detail::stack& s) const noexcept {
  s.waits_for = what_for();
  s.waits_at = mine;
}

bool request::commit_wait(detail::stack& s, void* self) {
  auto& r = *static_cast<request*>(self);
  r.describe(s);
  std::uintptr_t seen = pending;
  // Release: the suspended stack. Partner: finish().
  return r.word_.compare_exchange_strong(seen, reinterpret_cast<std::uintptr_t>(&s) + stack_mark,
                                         std::memory_order_release, std::memory_order_relaxed);
}

bool request::wait_entered() noexcept {
  STRATA_DCHECK(mine->lock.is_held());
  word_.store(reinterpret_cast<std::uintptr_t>(&detail::calling_stack()) + stack_mark,
              std::memory_order_relaxed);
  // Release: the suspended stack. Partner: whoever takes the receive out of the port.
  const auto unlock = [](detail::place&, void* lock) {
    static_cast<detail::spin_lock*>(lock)->unlock();
  };
  if (detail::suspend_at_once(unlock, &mine->lock, what_for(), mine)) [[likely]]
    return true;
  word_.store(pending, std::memory_order_relaxed);
  return false;
}

bool request::wait(std::int64_t deadline_ns) {
  if (is_done()) return true;
  const bool on_worker = detail::this_worker().owner != nullptr;
  if (on_worker) {
    messenger->look_for(*this);
    if (is_done()) return true;
  }
  if (deadline_ns == detail::parking::never && on_worker) {
    detail::suspend(&commit_wait, this);
    return is_done();  // always, and acquires: it may have ended before we were off our stack
  }
  try {
    while (!is_done()) {
      const detail::unparked why = detail::park({.what = what_for(),
                                                 .address = &word_,
                                                 .still = &must_wait,
                                                 .argument = this,
                                                 .deadline_ns = deadline_ns,
                                                 .kinds = kind_of_caller()});
      if (why == detail::unparked::timed_out && !is_done()) {
        withdraw(&word_);
        return is_done();
      }
    }
  } catch (...) {  // announced, perhaps, and nobody waits there
    withdraw(&word_);
    throw;
  }
  return true;
}

bool request::has_room_for(std::size_t bytes, bool is_here,
                           const std::vector<std::byte>* given) noexcept {
  if (looks != nullptr && is_here) return true;
  if (whole == nullptr) return bytes <= into.size();
  if (given != nullptr && given->size() == bytes) return true;
  if (bytes <= whole->capacity()) return true;
  whole->clear();  // what it holds is not to be copied, with the port's lock
  try {
    whole->reserve(bytes);
  } catch (const std::exception&) {  // no memory, or more than there can be
    return false;
  }
  return true;
}

void request::throw_end() const {
  STRATA_CHECK(how_ != outcome::done);
  switch (how_) {
    case outcome::cancelled:
      throw misuse_error("a transfer that was cancelled has no result");
    case outcome::too_large:
      throw message_too_large_error(
          info, "a message of " + std::to_string(info.bytes) + " bytes does not fit into " +
                    std::to_string(into.size()) + ": receive it with more room");
    case outcome::no_memory:
      throw std::bad_alloc();
    case outcome::left:
      // Of a message that was matched already the source is known.
      if (is_receive())
        throw cluster::has_left(info.source ? info.source.node() : wanted.source.node());
      [[fallthrough]];  // its endpoints have ended with it
    case outcome::closed:
      throw endpoint_closed_error(info.target, "endpoint " + text_of(info.target) + " has ended");
    case outcome::over:
      throw after_runtime();
    case outcome::announced:
      throw announced_end(info.target, "endpoint " + text_of(info.target) + " has ended");
    case outcome::done:
    case outcome::lost:
      break;
  }
  std::rethrow_exception(loss_);
}

misuse_error after_runtime() {
  return misuse_error(
      "an endpoint or a transfer that has outlived its runtime: it can only be destroyed");
}

std::string text_of(endpoint_id id) {
  return std::to_string(id.bits() & 0xFF'FFFFU) + " of node " + std::to_string(id.node());
}

std::string text_of(const pattern& p) {
  std::string text = "from any endpoint";
  if (p.is_by_node()) {
    text += " of node " + std::to_string(p.source.node());
  } else if (p.source) {
    text = "from endpoint " + text_of(p.source);
  }
  return text + (p.tag == any_tag ? " with any tag" : " with tag " + std::to_string(p.tag));
}

}  // namespace strata::messages
