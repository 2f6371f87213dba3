// SPDX-License-Identifier: Apache-2.0
// Waits of this node's threads for what threads of any node may have to do: a unit of a semaphore
// that has a name, say. Who is to do it may be lost.
//
// Invariant: nobody waits here once the job has lost a node.
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <exception>

#include "messages/match_list.hpp"
#include "strata/detail/parking.hpp"
#include "sync/spin_lock.hpp"

namespace strata::messages {

// Any thread of the runtime.
class common_waits {
 public:
  // park(). The loss of a node ends it as unpark() does: who waits for something looks whether it
  // is there, as ever, and is told when it comes back here, for then this throws the loss, and has
  // not waited. So nobody who was woken leaves with what it was woken for.
  strata::detail::unparked park(const strata::detail::parking& how);
  // Throws the loss, if there is one.
  void require_all_nodes() const;
  // The job has lost a node; once.
  void on_lost(const std::exception_ptr& error) noexcept;

 private:
  struct wait {
    const strata::detail::parking* how;
    const std::atomic<bool>* is_lost;
    match_links<wait> links[1];
  };
  class listed;
  // Held briefly, by uninterrupted threads and by who handles messages.
  struct shard {
    strata::detail::spin_lock lock;
    match_list<wait, 0> waits;
  };
  static constexpr std::size_t shards_in_all = 16;
  static bool goes_on(void* w);

  std::array<shard, shards_in_all> shards_;  // by the worker on which a wait begins
  std::exception_ptr loss_;                  // written before is_lost_
  std::atomic<bool> is_lost_{false};
};

}  // namespace strata::messages
