// SPDX-License-Identifier: Apache-2.0
#include "messages/groups/member.hpp"

#include <algorithm>
#include <exception>
#include <new>
#include <type_traits>
#include <utility>

#include "messages/groups/with_patience.hpp"
#include "messages/request.hpp"
#include "strata/error.hpp"

namespace strata::messages {
namespace {

// ---- tags: the operation, its number, its root, and the length of the chain ----

// Four bits. With the highest value tags can be beyond message_tag_max: it is that of leave, whose
// number and root are 0.
static_assert(static_cast<unsigned>(operation::leave) == 15);
constexpr unsigned chain_max = 0xFF;
constexpr message_tag place_mask = ~message_tag{chain_max};

message_tag place_of(operation what, std::uint32_t number, unsigned root) noexcept {
  return static_cast<message_tag>(what) << 28 | (number & 0xFFU) << 20 | (root & 0xFFFU) << 8;
}
operation operation_of(message_tag tag) noexcept { return static_cast<operation>(tag >> 28); }

std::string described(message_tag tag) {
  static constexpr std::array names{"barrier",        "broadcast",      "reduce",  "all_reduce",
                                    "reduce_scatter", "scan",           "gather",  "gather_any",
                                    "all_gather",     "all_gather_any", "scatter", "scatter_any",
                                    "all_to_all",     "all_to_all_any", "split",   "leave"};
  static_assert(names.size() == static_cast<std::size_t>(operation::leave) + 1);
  return std::string(names[static_cast<std::size_t>(operation_of(tag))]) + " (operation " +
         std::to_string(tag >> 20 & 0xFFU) + " modulo 256, root " +
         std::to_string(tag >> 8 & 0xFFFU) + " modulo 4096)";
}

// Nobody can finish these before all have begun them.
bool waits_for_all(operation what) noexcept {
  return what == operation::barrier || what == operation::all_reduce ||
         what == operation::reduce_scatter || what == operation::all_gather ||
         what == operation::all_gather_any || what == operation::all_to_all ||
         what == operation::all_to_all_any || what == operation::split;
}

}  // namespace

// ---- where it hears from the others ----

std::unique_ptr<member> member::opened() { return std::unique_ptr<member>(new member); }

void member::be_among(unsigned rank, std::shared_ptr<roster> all) noexcept {
  rank_ = rank;
  all_ = std::move(all);
}

void member::open() {
  own_.emplace();
  receives_[leaver] = own_->start_receive(std::as_writable_bytes(std::span(&notice_, 1)),
                                          any_endpoint, place_of(operation::leave, 0, 0));
}

member::~member() {
  if (std::uncaught_exceptions() > exceptions_) leave("an exception has ended its group");
}

// ---- operations ----

void member::begin(operation what, unsigned root) {
  if (!own_)
    throw member_left_error(rank_, members()[rank_],
                            "this member has left the group: " + why_left_);
  now_ = what;
  root_ = root;
  ++number_;
  traffic_.longest_chain = 0;
  if (root >= size())
    fail(misuse_error("member " + std::to_string(root) + " of a group that has " +
                      std::to_string(size()) + " is to be the root"));
  if (has_heard_of_leaver()) report_leaver();
  if (waits_for_all(what)) {
    ahead_ = 0;
  } else if (++ahead_ == ahead_max) {
    ahead_ = 0;
    meet();
  }
}

void member::require(bool condition, const char* what) {
  if (!condition) fail(misuse_error(what));
}

message_tag member::tag_of(unsigned chain) const noexcept {
  return place_of(now_, number_, root_) | std::min(chain, chain_max);
}

member::sending member::start_send(unsigned to, std::span<const std::byte> bytes) {
  ++traffic_.messages_sent;
  traffic_.bytes_sent += bytes.size();
  return {own_->start_send(all_->peers[to], tag_of(traffic_.longest_chain + 1), bytes), to};
}

void member::finish(sending& s) {
  try {
    s.transfer_.wait();
  } catch (const announced_end&) {
    report_leaver();  // the notice may come later than this
  } catch (const endpoint_closed_error&) {
    if (has_heard_of_leaver()) report_leaver();
    fail(member_left_error(
        s.to_, members()[s.to_],
        "member " + std::to_string(s.to_) + " has ended its group, and others still use it"));
  }
}

void member::send(unsigned to, std::span<const std::byte> bytes) {
  sending s = start_send(to, bytes);
  finish(s);
}

void member::begin_receive(unsigned from, std::span<std::byte> into) {
  receives_[awaited] = own_->start_receive(into, all_->peers[from]);
}

void member::finish_receive(unsigned from, std::size_t bytes) {
  transfer& message = receives_[awaited];
  message_info m;
  try {
    if (!message.test() && wait_any(receives_) == leaver) report_leaver();
    m = message.wait();
  } catch (const message_too_large_error& e) {
    m = e.which();
  } catch (const node_lost_error&) {
    // If its node has left, it may have said before why it leaves.
    if (has_heard_of_leaver()) report_leaver();
    throw;
  }
  if (operation_of(m.tag) == operation::leave) report_leaver();  // somebody else has left before
  if ((m.tag & place_mask) != place_of(now_, number_, root_) || m.bytes != bytes)
    disagree(from, m, bytes);
  ++traffic_.messages_received;
  traffic_.longest_chain = std::max(traffic_.longest_chain, m.tag & chain_max);
}

void member::receive(unsigned from, std::span<std::byte> into) {
  begin_receive(from, into);
  or_leave([&] { finish_receive(from, into.size()); });
}

void member::exchange(unsigned to, std::span<const std::byte> bytes, unsigned from,
                      std::span<std::byte> into) {
  begin_receive(from, into);
  or_leave([&] {
    sending s = start_send(to, bytes);
    finish_receive(from, into.size());
    finish(s);
  });
}

void member::combine(const strata::detail::combination& op, const std::byte* left,
                     const std::byte* right, std::byte* into, std::size_t bytes) {
  // Before what has been begun is waited for.
  or_leave([&] { op.apply(op.function, left, right, into, bytes / op.element_bytes); });
}

void member::meet() {
  for (std::uint64_t far = 1; far < size(); far *= 2) {
    exchange(static_cast<unsigned>((rank_ + far) % size()), {},
             static_cast<unsigned>((rank_ + size() - far) % size()), {});
  }
}

// ---- leaving ----

void member::leave(std::string_view why) noexcept {
  if (!own_) return;
  try {
    why_left_ = why;
  } catch (const std::bad_alloc&) {  // its own later operations do not say why
  }
  notice mine;
  mine.who = rank_;
  const std::size_t length = std::min(why.size(), mine.text.size() - 1);
  std::copy_n(why.data(), length, mine.text.data());
  try {
    std::vector<transfer> sends;
    with_patience([&] { sends.reserve(size()); });
    for (unsigned i = 0; i < size(); ++i) {
      if (i == rank_) continue;
      sends.push_back(with_patience([&] {
        return own_->start_send(all_->peers[i], place_of(operation::leave, 0, 0), bytes_of(mine));
      }));
    }
    // First: others may wait until this member receives, and it never will.
    close_announced();
    for (transfer& t : sends) {
      try {
        with_patience([&] { t.wait(); });
      } catch (const error&) {  // has ended as well
      }
    }
  } catch (...) {  // nothing can be sent or waited for here
  }
  close();
}

void member::leave_by_exception() noexcept {
  if (!own_) return;
  try {
    throw;
  } catch (const std::exception& e) {
    leave(e.what());
  } catch (...) {
    leave("an exception that is no std::exception");
  }
}

void member::close_announced() noexcept {
  own_->close_announced();
  close();
}

void member::close() noexcept {
  own_.reset();
  for (transfer& t : receives_) t = transfer();
}

template <class Error>
void member::fail(const Error& e) {
  leave(e.what());
  throw e;
}

void member::disagree(unsigned with, const message_info& m, std::size_t expected) {
  fail(group_error(with, "members of a group disagree: member " + std::to_string(rank_) +
                             " expects " + std::to_string(expected) + " bytes of " +
                             described(tag_of(0)) + ", member " + std::to_string(with) + " sent " +
                             std::to_string(m.bytes) + " of " + described(m.tag)));
}

// Of a node that is lost both receives hear: one may have thrown already, and tells no more.
bool member::has_heard_of_leaver() const {
  return receives_[leaver].valid() && receives_[leaver].test();
}

void member::report_leaver() {
  receives_[leaver].wait();
  notice_.text.back() = 0;
  const unsigned who = std::min(notice_.who, size() - 1);
  // It has told everybody, so this member need not.
  why_left_ = "member " + std::to_string(who) + " has left: " + notice_.text.data();
  close_announced();
  throw member_left_error(who, members()[who], why_left_);
}

}  // namespace strata::messages
