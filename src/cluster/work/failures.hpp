// SPDX-License-Identifier: Apache-2.0
// A computation one of whose fibers threw. Every node hears of it and gives up what it has of the
// computation; when nothing of it moves anywhere any more, all of them forget it; and only when
// they have, those who wait on node 0 are told, who may begin the next one. Those who wait on other
// nodes are told as these forget it: what they begin before the run() on node 0 has ended may be
// given up by a node that has not forgotten yet. If that fails too, all forget once more.
//
// A node may come meanwhile, of which whoever tells of the failure knows nothing yet: node 0, which
// knows every comer first, tells it.
//
// Word of a failure is counted like work: it comes from any node, and whoever heard of it after it
// had been told to forget it would give up the next computation.
#pragma once
#include <exception>
#include <mutex>
#include <vector>

#include "cluster/words/codec.hpp"
#include "cluster/words/surroundings.hpp"

namespace strata::cluster {

class quiescence;

class failures {
 public:
  failures(mailer& mail, local_node& here, quiescence& quiet, work_counts& counts);

  // The computation has failed on this node, for the first time since all forgot the last failure,
  // or because others say so. True, on node 0: somebody who holds no lock has to call settle().
  [[nodiscard]] bool tell(const std::exception_ptr& error);
  // On node 0.
  void settle();
  // A node is lost, and the others hear of the loss itself.
  void keep_silent();
  // On node 0, with the inbox: a node has come, which is to hear of it before it begins anything.
  void tell_comer(node_id n);

  // False: not one of ours. Throws malformed.
  bool on_message(node_id from, kind k, reader r);

 private:
  // To all others, or one; in the end, whatever memory there is.
  void say(kind k, std::span<const std::byte> payload);
  void say_to(node_id n, kind k, std::span<const std::byte> payload);
  [[nodiscard]] std::vector<node_id> members() const;
  // On node 0, to those who came late: `from` may not have known them yet.
  void pass_on(node_id from, std::span<const std::byte> thrown);
  void on_failed(node_id from, reader r);
  // With the lock.
  void know(std::span<const std::byte> thrown);
  // On node 0, when nothing moves.
  void forget_everywhere();
  // False, on node 0: a node has failed while all forget, perhaps after it had been told to.
  [[nodiscard]] bool try_forget();

  mailer& mail_;
  local_node& here_;
  quiescence& quiet_;
  work_counts& counts_;

  std::mutex mutex_;
  bool known_ = false;             // told to the others, or heard from them
  bool settling_ = false;          // node 0 waits until nothing moves any more
  bool fails_anew_ = false;        // another node has meanwhile, or one has come
  std::vector<std::byte> thrown_;  // on node 0, while it is known: what was told or heard
};

}  // namespace strata::cluster
