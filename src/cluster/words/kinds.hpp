// SPDX-License-Identifier: Apache-2.0
// Everything that nodes say to each other. The numbers are part of the wire version.
#pragma once
#include <cstddef>
#include <cstdint>

#include "net/wire.hpp"

namespace strata::cluster {

using net::node_id;

enum class kind : net::message_kind {
  // Data (split_phase.cpp). All of these carry work: they are counted for quiescence.
  signal = 1,     // slot
  increment = 2,  // slot, how many
  put = 3,        // where to, slot or none, bytes
  get = 4,        // where from, into, slot or none, how many
  got = 5,        // as put; answers a get
  invoke = 6,     // a token
  drop_in = 7,    // mailbox, offset, bytes in all, bytes
  returned = 8,   // home of a call, whether it threw, its result or that (thrown.hpp)
  // Messages between endpoints (messages/wire.hpp), counted too.
  message = 9,
  offer = 10,
  pull = 11,
  piece = 12,
  fetched = 13,
  room = 14,
  closed = 15,
  help = 20,  // these five: before 16 there is no number left
  seek = 21,
  sought = 22,
  recall = 23,
  told = 24,

  // Stealing (stealing.cpp).
  steal = 16,       // how many; whether the thief waits when there is nothing
  tokens = 17,      // load left, tokens. Carries work.
  nothing = 18,     // there is nothing
  shelf_room = 19,  // the receiver's shelf has some (shelving.cpp)

  // Quiescence (quiescence.cpp).
  probe = 32,    // wave, when to answer it
  passive = 33,  // wave, sent, received

  // Between nodes that share no network (links.cpp): a forwarded_head and what it is about.
  forward = 40,
  hold = 41,  // a held_head: what goes there by me waits for room, or does not any more

  // Before the job begins, between nodes that share a network (survey.cpp).
  ping = 42,  // number, bytes of no meaning
  pong = 43,  // number

  // A computation that fails (failures.cpp). Counted too.
  failed = 48,   // an exception left a fiber: that (thrown.hpp)
  settled = 34,  // nothing moves anywhere any more

  // The job (engine.cpp, liveness.cpp).
  stop = 49,       // the program has ended
  heartbeat = 50,  // we live; a byte: and watch nobody yet
  lost = 51,       // a node is gone: number, why
  report = 53,     // print who waits for what
  goodbye = 52,    // the sender ends on purpose, after `stop`

  // Nodes that come and go (membership_protocol.cpp).
  arrive = 54,
  known = 55,
  leaving = 56,
  farewell = 57,
  kept_back = 58,
  stays = 59,
  left = 60,  // messages that carry work: sent, received
  parted = 61,
  names = 62,  // to node 0: what the leaver knew of the directory (messages/directory.cpp)

  // Other ways (rerouting.cpp).
  next_ways = 64,   // a way_plan
  ways_ready = 65,  // these five: its number
  use_ways = 66,
  way_ends = 67,
  ways_done = 68,
  ways_over = 69,
  spare_me = 70,
  spared = 71,  // whether it is
  forwards = 72,

  // Around connections that have ended (detours.cpp, links.cpp).
  cut_off = 73,    // who and who
  unheard = 63,    // how many messages were given to the connection
  resume = 77,     // how many messages have come
  detour = 78,     // by whom, and what
  confirmed = 79,  // how many messages have come
  gone = 82,       // who: it has left, and nobody needs a connection to it
  // Their networks, while the job runs (remeasuring.cpp).
  measure_again = 74,   // number
  measured_again = 75,  // number, what was measured
  saw_leave = 76,       // to node 0: who has left (rerouting.cpp)

  // A stall (stall_watch.cpp).
  who_waits = 80,   // number of the round, whether to say it in words
  waits_here = 81,  // of the round; what this node has done, and who waits here for what
};

// What is counted for quiescence.
constexpr bool carries_work(kind k) noexcept {
  return k < kind::steal || k == kind::tokens || k == kind::failed || k == kind::settled ||
         (k >= kind::help && k <= kind::told);
}
// What a node that is just coming or leaving does not get: it carries work, or makes the node send
// some.
constexpr bool can_be_kept_back(kind k) noexcept { return k < kind::probe || carries_work(k); }

// What is counted at both ends of a connection, and said by others when that ends.
constexpr bool counts_for_connection(kind k) noexcept {
  return k != kind::ping && k != kind::pong && k != kind::confirmed && k != kind::resume &&
         k != kind::unheard;
}
// What two neighbours say about the connection between them, or others.
constexpr bool is_about_connections(kind k) noexcept {
  return k == kind::cut_off || k == kind::unheard || k == kind::resume || k == kind::detour ||
         k == kind::confirmed;
}

// The head of one hop.
inline net::header header_of(node_id from, node_id to, kind k) noexcept {
  net::header h{};
  h.kind = static_cast<net::message_kind>(k);
  h.source = from;
  h.destination = to;
  return h;
}

// What travels with a message to a node that is no neighbour.
struct forwarded_head {
  net::message_kind kind;
  node_id source;          // who made it
  node_id destination;     // final
  std::uint16_t hops;      // how often it was forwarded
  std::uint32_t ways = 0;  // by the ways of this number, on every node (rerouting.hpp)
};

struct held_head {
  node_id destination;
  std::uint16_t number;  // of the word about this way; odd: wait, even: do not. Later ones count
};

// What one message may carry. Larger things are cut up above.
inline constexpr std::size_t heads_of_networks = 120;
inline constexpr std::size_t message_bytes_max =
    net::payload_bytes_max - sizeof(forwarded_head) - heads_of_networks;
// Of messages that such things are cut into. With what networks put before it, it is no more than
// 64 KiB: UCX takes more apart over sockets, and puts it together in memory of its own, which takes
// half as long again for what is large.
inline constexpr std::size_t part_bytes_max =
    (std::size_t{64} << 10) - sizeof(forwarded_head) - heads_of_networks;

}  // namespace strata::cluster
