// SPDX-License-Identifier: Apache-2.0
// Which protocol of a node gets which message: the same in the runtime and in the simulation.
#pragma once
#include <span>

#include "cluster/links/links.hpp"
#include "cluster/members/membership_protocol.hpp"
#include "cluster/named_networks.hpp"
#include "cluster/protocols.hpp"
#include "cluster/words/codec.hpp"
#include "cluster/work/stall_watch.hpp"

namespace strata::cluster {

// Of one node. None of it is owned.
struct message_handlers {
  protocols& all;
  stall_watch& stalls;
  membership_protocol& who;
  named_networks* networks;  // null: no ways change
  links& connections;
  const membership& members;
  // A node is lost: what others still send may be for frames that are being unwound.
  bool is_broken;
};

inline bool comes_too_late(kind k, bool is_broken) noexcept {
  return is_broken && k < kind::failed && k != kind::forward && k != kind::hold;
}

// Of the ground that the node stands on.
class handling_ground {
 public:
  // What `from` has said, and others have carried, is to be handled now.
  virtual void receive(node_id from, kind k, std::span<const std::byte> payload) = 0;
  // False: not one of those that only this ground knows.
  virtual bool on_other_kind(node_id from, kind k) = 0;

 protected:
  ~handling_ground() = default;
};

// Something has come from `from`. With the inbox. Throws malformed, also for a kind that nobody
// knows; misuse_error.
inline void handle(node_id from, kind k, std::span<const std::byte> payload,
                   const message_handlers& h, handling_ground& ground) {
  if (comes_too_late(k, h.is_broken)) return;
  if (h.all.on_message(from, k, payload)) return;
  reader r(payload);
  if (h.stalls.on_message(from, k, r)) return;
  if (h.members.is_elastic() && h.who.on_message(from, k, r)) return;
  if (h.networks != nullptr && h.networks->on_message(from, k, r)) return;
  switch (k) {
    case kind::forward:
      if (const auto f = h.connections.unwrap(payload, h.members)) {
        const forwarded_head& what = f->what;
        const auto carried = static_cast<kind>(what.kind);
        h.all.life.heard_of(what.source);
        if (h.networks == nullptr ||
            !h.networks->rerouting().keeps(what.source, what.ways, carried, f->payload))
          ground.receive(what.source, carried, f->payload);
      }
      return;
    case kind::hold:
      if (!h.is_broken) h.connections.hold(from, r);
      return;
    case kind::ping:
    case kind::pong:
      return;  // so late that nobody waits for it
    default:
      if (!ground.on_other_kind(from, k)) throw malformed("a message of no kind that there is");
  }
}

}  // namespace strata::cluster
