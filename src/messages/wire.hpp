// SPDX-License-Identifier: Apache-2.0
// What messengers say to each other; the kinds are in cluster/words/kinds.hpp.
#pragma once
#include <cstddef>
#include <cstdint>

#include "cluster/words/kinds.hpp"
#include "strata/message.hpp"

namespace strata::messages {

// kind::message: the bytes follow.
struct message_head {
  std::uint64_t target, source;
  std::uint32_t tag, unused;
};
// kind::offer: a message that stays with its sender until it is matched.
struct offer_head {
  std::uint64_t target, source;
  std::uint64_t bytes;
  std::uint64_t offer;               // the sender's number for it
  std::uint64_t address;             // where its bytes are in the sender's process
  std::uint64_t mark_address, mark;  // see process_memory.hpp
  std::uint32_t process;             // the sender's process id
  std::uint32_t tag;
  std::uint64_t charge;  // of the sender's room; 0: its receiver has sought it
};
// kind::pull: send these bytes of it. in_one: 1 if they are all of it, and the receiver expects
// them as a transfer under its number (net/transfers.hpp), else 0: in pieces.
struct pull_head {
  std::uint64_t offer, pull;  // the sender's number, the receiver's
  std::uint64_t offset, bytes;
  std::uint64_t in_one;
};
// kind::piece: here they are.
struct piece_head {
  std::uint64_t pull, offset;
};
// kind::help: write pieces of it into the receiver's memory while that reads others, as
// net/joint_copies.hpp says.
struct help_head {
  std::uint64_t offer;
  std::uint64_t copy, turn;  // the receiver's
  std::uint64_t bytes, piece_bytes;
  std::uint64_t address, door;  // in the receiver's process
  std::uint64_t mark_address, mark;
  std::uint64_t process;
};
// kind::fetched: the receiver has all of it.
struct fetched_head {
  std::uint64_t offer;
};
// kind::room: so many bytes have been received. stuck: 1 if somebody there waits for a message and
// so much is kept for others that what is wanted may not have been sent, else 0. The highest number
// has the last word on that.
struct room_head {
  std::uint64_t target, bytes, stuck, number;
};
// kind::closed: there is no such endpoint (any more), or only that offer is not there any more.
// offer: what is refused for that; 0: nothing.
enum class end_word : std::uint64_t {
  closed,
  announced,  // as outcome::announced
  recalled,   // the endpoint is there
};
struct closed_head {
  std::uint64_t target, offer;
  end_word how;
};
// kind::seek: these follow, one or more: somebody waits at the endpoint for messages that have not
// come. What it means: seeking.cpp.
struct seek_head {
  std::uint64_t target;
};
struct sought_pattern {
  std::uint64_t source, tag;  // as in a receive
};
// kind::sought: answers: 1 if it is about one kind::seek, else 0. more: 1 if another look for what
// somebody waits for may find something, else 0.
struct sought_head {
  std::uint64_t target, answers, more;
};
// kind::recall: a message that is not matched yet is given up; see giving_up.cpp.
struct recall_head {
  std::uint64_t target, offer;
};

// kind::told: of an object that several nodes know, by its number; what is said is in telling.hpp.
enum class told_of : std::uint64_t { best, stop };
enum class told_word : std::uint64_t {
  // To the object's node.
  asks,   // tell this node from now on
  found,  // a better value
  wants,  // a stop is requested
  fails,  // what was wanted does not come
  // From there.
  answers,  // asks: what the value is, or whether a stop has been requested
  ended,    // answers asks: there is no such object any more
  known,    // a better value, or that a stop is requested
  over,     // it has ended
  // Answers found and known of a best: there may be another one.
  heard,
};
struct told_head {
  std::uint64_t number, value;
  told_of what;
  told_word word;
};

// Larger messages stay with their sender until they are matched.
inline constexpr std::size_t eager_bytes_max = eager_bytes_everywhere;
// The same between nodes that write to memory that both see: two copies, one made by each end, are
// made sooner than one that the kernel makes (decision 14).
inline constexpr std::size_t eager_bytes_near = std::size_t{64} << 10;
static_assert(eager_bytes_near + sizeof(message_head) <= cluster::message_bytes_max);
// In messages of this process to an endpoint that were copied; what more is sent waits where it is.
inline constexpr std::uint32_t local_window_bytes = 64U << 10;
// What one node may send to an endpoint before that is received. Each message counts as its bytes
// and a charge. The reserve is for messages that leave their bytes at home, and so can still be
// found by their source and tag: large ones, and all while the target is stuck.
inline constexpr std::uint32_t content_window_bytes = 256U << 10;
inline constexpr std::uint32_t reserve_bytes = 64U << 10;
inline constexpr std::uint32_t window_bytes = content_window_bytes + reserve_bytes;
inline constexpr std::uint32_t charge_for_message = 64;
// What is kept of a message besides its bytes, at most: see keep(). It is more than the charge.
// Charged in full, streams of small messages would wait for room whenever their receiver does not
// run: 64 bytes over TCP took 1.6 to 1.9 times as long on a machine that others used too.
inline constexpr std::uint32_t kept_for_message = 288;
// So this is what strata/message.hpp promises: a window full of empty messages.
static_assert(window_bytes / charge_for_message * kept_for_message == 1440U << 10);
// Room is given back when this much of it has been received.
inline constexpr std::uint32_t give_back_bytes = 64U << 10;
// From so much on that is kept a target is stuck when it waits for another message. A sender that
// has no room for one more message has sent at least all but that message; what of this was
// received and not given back is less than a step; so at least so much is kept, once it has
// arrived. If anybody waits there, the sender learns that it must not.
inline constexpr std::uint32_t stuck_bytes =
    content_window_bytes - (charge_for_message + eager_bytes_near) - give_back_bytes;
// Who has no room for an envelope either has sent more than the window less one of them, of which
// less than a step was received and not given back: so at least so much is kept.
inline constexpr std::uint32_t full_bytes = window_bytes - charge_for_message - give_back_bytes;

inline constexpr std::size_t piece_bytes_max = cluster::part_bytes_max - sizeof(piece_head);
inline constexpr std::size_t patterns_in_one_max =
    (cluster::part_bytes_max - sizeof(seek_head)) / sizeof(sought_pattern);

}  // namespace strata::messages
