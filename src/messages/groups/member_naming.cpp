// SPDX-License-Identifier: Apache-2.0
// A group out of a list that all of its members have: they find out whether it is the same, tell
// each other their endpoints for the group, and find out who has ended before.
//
// In round k everybody knows the endpoints of the 2^k members from itself on, and tells them to the
// member 2^k ranks back. Who has found something wrong says so in all further rounds: there are as
// many for all whose lists are as long, so all of them end.
//
// Nobody hears from a member whose endpoint has ended. Whether the next member is there each asks
// before it says anything. Of whom it hears from in a later round it is told in the round before:
// by a member that hears from that one itself, and has been told, too. What a member that has ended
// would have told remains unknown to all, so all find out. Who ends later is waited for, unless it
// has heard all: then it has been asked for, as nobody says anything before. Where there is no
// memory for a round, it is tried again, as others wait for what this member says in it.
#include <algorithm>
#include <cstring>
#include <exception>
#include <optional>
#include <string>
#include <utility>

#include "messages/groups/member.hpp"
#include "messages/groups/with_patience.hpp"
#include "messages/request.hpp"
#include "strata/error.hpp"

namespace strata::messages {
namespace {

// While a group is made, at the endpoints of the program, whose receives leave such tags alone. Its
// round is added.
constexpr message_tag naming_tag = message_tag_max + 1;

// Never 0.
std::uint64_t hash_of(std::span<const endpoint_id> members) noexcept {
  std::uint64_t h = members.size();
  for (const endpoint_id m : members) {
    h = (h ^ m.bits()) * 0x9E37'79B9'7F4A'7C15U;
    h ^= h >> 29;
  }
  return h | 1;
}

// Words before the names: the list, or 0 where another one was found; and whether the member is
// there from which the sender hears in this round.
constexpr std::size_t naming_head = 2;

// A call to its node, if that is another one.
bool is_there(endpoint& mine, endpoint_id who) {
  try {
    mine.flush(who);
    return true;
  } catch (const endpoint_closed_error&) {
    return false;
  }
}

}  // namespace

struct member::round {
  unsigned number = 0;
  unsigned to = 0, from = 0;
  std::size_t far = 1, count = 1;  // ranks from here to there; names that are told
  [[nodiscard]] message_tag tag() const noexcept { return naming_tag + number; }
};
// Who was found to have another list, and whose endpoint to have ended.
struct member::findings {
  std::optional<unsigned> other_list, ended;
};

member::member(endpoint& mine, std::vector<endpoint_id> members)
    : all_(std::make_shared<roster>()), exceptions_(std::uncaught_exceptions()) {
  all_->members = std::move(members);
  std::vector<endpoint_id> sorted = all_->members;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
    throw misuse_error("a group in which somebody is twice");
  const auto place = std::ranges::find(all_->members, mine.id());
  if (place == all_->members.end())
    throw misuse_error("a group that is made by endpoint " + text_of(mine.id()) +
                       ", which is not in its list");
  rank_ = static_cast<unsigned>(place - all_->members.begin());
  open();
  exchange_names(mine);
}

void member::exchange_names(endpoint& mine) {
  const std::uint64_t list = hash_of(members());
  findings found;
  all_->peers.resize(size());
  all_->peers[0] = own_->id();  // from this member on; turned at the end
  std::vector<std::uint64_t> out;
  presence next = presence::unknown;  // of who is heard from next
  round r;
  for (; r.far < size(); r.far *= 2, ++r.number) {
    r.count = std::min(r.far, size() - r.far);
    r.to = static_cast<unsigned>((rank_ + size() - r.far) % size());
    r.from = static_cast<unsigned>((rank_ + r.far) % size());
    const bool hears = next == presence::unknown
                           ? with_patience([&] { return is_there(mine, members()[r.from]); })
                           : next == presence::there;
    transfer sends = with_patience([&] {
      out.assign({found.other_list ? 0 : list, hears ? 1U : 0U});
      for (std::size_t i = 0; i < r.count; ++i) out.push_back(all_->peers[i].bits());
      return mine.start_internal_send(members()[r.to], r.tag(), bytes_of(out));
    });
    ++traffic_.messages_sent;
    traffic_.bytes_sent += out.size() * sizeof(std::uint64_t);
    next = presence::unknown;
    if (hears) {
      next = hear_names(mine, r, list, found);
    } else {
      found.ended = r.from;
    }
    try {
      with_patience([&] { sends.wait(); });
    } catch (const endpoint_closed_error&) {
      found.ended = r.to;
    }
  }
  require_all_named(found);
  std::rotate(all_->peers.begin(), all_->peers.end() - rank_, all_->peers.end());
  traffic_.longest_chain = r.number;
}

// Returns what is known of the member that is heard from in the next round.
member::presence member::hear_names(endpoint& mine, const round& r, std::uint64_t list,
                                    findings& found) {
  message m;
  try {
    m = with_patience([&] { return mine.receive_internal(members()[r.from], r.tag()); });
  } catch (const node_left_error&) {
    found.ended = r.from;
    return presence::unknown;
  }
  ++traffic_.messages_received;
  auto in = with_patience([&] { return std::vector<std::uint64_t>(naming_head + r.count); });
  if (m.bytes == in.size() * sizeof(std::uint64_t))
    std::memcpy(in.data(), m.content.data(), m.bytes);
  for (std::size_t i = 0; i < r.count; ++i)
    all_->peers[r.far + i] = endpoint_id::from_bits(in[naming_head + i]);
  if (in[0] == list) return in[1] != 0 ? presence::there : presence::ended;
  if (!found.other_list) found.other_list = r.from;
  return presence::unknown;
}

void member::require_all_named(findings& found) const {
  if (found.other_list) {
    const unsigned other = *found.other_list;
    throw group_error(other, "members make a group from different lists: member " +
                                 std::to_string(other) + ", endpoint " + text_of(members()[other]) +
                                 ", has another one than member " + std::to_string(rank_) +
                                 ", or has heard of one");
  }
  // Of those that are unknown the first has ended: by way of it the others would be known.
  const auto unknown = std::find(all_->peers.begin(), all_->peers.end(), endpoint_id());
  if (unknown != all_->peers.end())
    found.ended = static_cast<unsigned>(
        (rank_ + static_cast<std::size_t>(unknown - all_->peers.begin())) % size());
  if (!found.ended) return;
  const endpoint_id which = members()[*found.ended];
  throw endpoint_closed_error(which, "a group is made with member " + std::to_string(*found.ended) +
                                         ", endpoint " + text_of(which) + ", which has ended");
}

}  // namespace strata::messages
