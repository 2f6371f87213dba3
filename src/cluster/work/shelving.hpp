// SPDX-License-Identifier: Apache-2.0
// Tokens that the nodes of a host take from each other without the victim's help.
//
// A node offers a few of its oldest tasks, packed, on its shelf (net::shelves): its workers put
// them there when they share tasks anyway. A neighbour that runs dry takes one, which costs a few
// cache lines where a request costs waking the victim's receiver. What nobody wants the node takes
// back itself, before any of its workers sleeps; from then on it offers nothing more until somebody
// asks.
//
// For quiescence a task is sent when it is put on the shelf, and received by whoever takes it,
// which may be the node itself. So nothing that lies on a shelf, or in the hands of a node that is
// lost, looks as if it were over.
#pragma once
#include <array>
#include <atomic>
#include <mutex>

#include "cluster/words/codec.hpp"
#include "cluster/words/surroundings.hpp"
#include "cluster/work/split_phase.hpp"
#include "net/transport.hpp"
#include "sched/next_take.hpp"

namespace strata::cluster {

struct shelving_settings {
  net::shelves* shelves = nullptr;  // null: there are none
  unsigned offered_max = 0;         // 0: neither offers nor takes anything
};

class shelving {
 public:
  shelving(mailer& mail, local_node& here, split_phase& data, work_counts& counts, hunger& wanted,
           shelving_settings settings);

  // A task for w, by the thread that runs w: one that this node had put on its shelf, or one of a
  // neighbour's; null: none. Throws malformed; `whose` is then the neighbour whose shelf it is.
  [[nodiscard]] detail::task* take(detail::worker& w, node_id& whose, detail::next_take& after);

  // Something of this node's is on its shelf. While it is, some worker must be awake.
  [[nodiscard]] bool holds_something() const noexcept {
    return shelves_ != nullptr && shelves_->offered() != 0;
  }

  // w shares tasks: some of them go on the shelf, if there is room; false: none. By the thread that
  // runs w.
  bool fill(detail::worker& w);

  // Appends the oldest task of this node's shelf, packed, to a message for `to`. False: none.
  // True: counts.received is to be raised once the message is counted as sent.
  [[nodiscard]] bool pass_on(writer& out, node_id to);

  // This node leaves: it offers nothing more, and takes nothing of others.
  void close();

  // Another node looks for work, and did not find any on the shelf.
  void somebody_asks();

  // Throws malformed.
  bool on_message(node_id from, kind k, reader r);

  struct statistics {
    std::uint64_t offered = 0, taken_back = 0, passed_on = 0, taken = 0;
  };
  [[nodiscard]] statistics counted() const;

 private:
  struct packed {
    std::array<std::byte, net::shelves::bytes_max> bytes;
    std::size_t size = 0;
    detail::task* call = nullptr;  // one that waits here for its result
  };
  // With the lock:
  void attend(bool attended);
  [[nodiscard]] bool offer(detail::worker& w, detail::task* t);
  [[nodiscard]] bool take_from_own(packed& p);

  [[nodiscard]] detail::task* take_back(detail::worker& w);
  [[nodiscard]] detail::task* take_from(node_id node, detail::worker& w, detail::next_take& after);

  mailer& mail_;
  local_node& here_;
  split_phase& data_;
  work_counts& counts_;
  hunger& wanted_;
  const shelving_settings settings_;
  net::shelves* const shelves_;  // null: nothing is offered or taken

  // Of all that is done to this node's own shelf; those who take from it know nothing of it.
  mutable std::mutex mutex_;
  // The calls among what was put there, by place.
  std::array<detail::task*, net::shelves::places_max> calls_{};
  statistics counts_of_;
  std::atomic<std::uint64_t> taken_{0};
  std::atomic<bool> closed_{false};
  std::atomic<unsigned> next_{0};  // which neighbour is looked at first
};

}  // namespace strata::cluster
