// SPDX-License-Identifier: Apache-2.0
// The protocols of one node, and who gets which message. The same in the runtime and in the
// simulation.
#pragma once
#include <utility>

#include "cluster/members/liveness.hpp"
#include "cluster/words/message_copy.hpp"
#include "cluster/work/failures.hpp"
#include "cluster/work/quiescence.hpp"
#include "cluster/work/shelving.hpp"
#include "cluster/work/split_phase.hpp"
#include "cluster/work/stealing.hpp"

namespace strata::cluster {

class protocols {
 public:
  protocols(mailer& mail, local_node& here, const clock& time, const stealing_settings& s,
            std::int64_t lost_after_ns, liveness::loss lost, shelving_settings on_shelf = {},
            visiting_protocol* v = nullptr)
      : data(mail, here, counts),
        shelf(mail, here, data, counts, wanted, std::move(on_shelf)),
        balance(mail, here, data, shelf, counts, wanted, time, s),
        quiet(mail, here, counts),
        failed(mail, here, quiet, counts),
        life(mail, time, lost_after_ns, std::move(lost)),
        visitor(v),
        here_(here) {}

  // False: a kind that none of them knows. Throws malformed, misuse_error.
  bool on_message(node_id from, kind k, std::span<const std::byte> payload) {
    const reader r(payload);
    // They have furthest to go otherwise, and are often small.
    if (k >= kind::message && k <= kind::closed)
      return visitor != nullptr && visitor->on_message(from, k, r);
    return data.on_message(from, k, r) || balance.on_message(from, k, r) ||
           shelf.on_message(from, k, r) || quiet.on_message(from, k, r) ||
           failed.on_message(from, k, r) || life.on_message(from, k, r) ||
           (visitor != nullptr && visitor->on_message(from, k, r));
  }

  // What was meant for `node`, which has left: for quiescence it has been dealt with here. If
  // somebody may wait for what it would have done, and is told by nobody else, the computation
  // fails. By whoever handles messages.
  void give_up(node_id node, const message_copy& m);

  work_counts counts;
  hunger wanted;
  split_phase data;
  shelving shelf;
  stealing balance;
  quiescence quiet;
  failures failed;
  liveness life;
  visiting_protocol* const visitor;  // or null

 private:
  local_node& here_;
};

}  // namespace strata::cluster
