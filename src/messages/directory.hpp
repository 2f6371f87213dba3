// SPDX-License-Identifier: Apache-2.0
// One node's part of the directory: the names that are at home here, and what it remembers of
// others'. (Requirement P3.)
//
// A name's home follows from its hash and the nodes that began the job. When such a node leaves,
// node 0 gets what it knows, and answers in its place from the moment it has heard that it left.
// The names that a leaver has published go with it: every node forgets them as it hears of it, so
// nobody has to be told, and who knows that it has left takes them from nobody.
//
// Invariant: a name is published anew only when no node remembers what it stood for before.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "net/wire.hpp"
#include "strata/condition_variable.hpp"
#include "strata/directory.hpp"
#include "sync/spin_lock.hpp"

namespace strata::messages {

class messenger;

class directory {
 public:
  // ---- on a name's home ----
  // The publication that has the name now: v's, or another one that has taken it. Waits while the
  // name is being withdrawn.
  std::uint64_t enter(const std::string& name, const detail::published_value& v);
  // For node `asks`, which is told when the name is withdrawn. Waits until there is one, that time
  // has come, or this node begins to leave.
  detail::published_value give(const std::string& name, net::node_id asks,
                               std::int64_t deadline_ns);
  // Of that publication alone, if it is not 0: from now on it is given to nobody. Returns it; 0:
  // there is no such name. `remembered_by` are the nodes that may remember it.
  [[nodiscard]] std::uint64_t begin_to_withdraw(const std::string& name, std::uint64_t publication,
                                                std::set<net::node_id>& remembered_by);
  // They have forgotten it; others may have the name.
  void end_withdrawal(const std::string& name, std::uint64_t publication) noexcept;

  // For people: the names that are awaited here, a line each; none: nothing.
  [[nodiscard]] std::string describe_waits();

  // ---- nodes that come and go ----
  // Suspends until this node is the home of names with that hash. For whoever has heard of a leaver
  // before node 0 has.
  void await_duty(const messenger& here, std::size_t hash);
  void members_have_changed();
  // What `leaver` has published, here and in what this node remembers.
  void forget_those_of(net::node_id leaver);
  void begin_to_leave();
  // Whoever waits here, or will, throws `error`.
  void on_lost(const std::exception_ptr& error);
  // All that is at home here, in pieces of at most that size; and on node 0.
  [[nodiscard]] std::vector<std::vector<std::byte>> pack(std::size_t bytes_max);
  // Node numbers are below `nodes`; what was published by a node that the job no longer `has` is
  // left out. Throws malformed.
  void inherit(std::span<const std::byte> packed, net::node_id nodes,
               const std::function<bool(net::node_id)>& has);

  // ---- on every node ----
  // Which no other publication in the job has.
  [[nodiscard]] std::uint64_t new_publication(net::node_id self) noexcept;
  // The node that has made it.
  [[nodiscard]] static net::node_id publisher_of(std::uint64_t publication) noexcept {
    return static_cast<net::node_id>(publication >> 48);
  }
  // What this node remembers; not found: nothing. `epoch`: see remember().
  detail::published_value recall(const std::string& name, std::uint64_t& epoch);
  // Unless a name has been withdrawn since recall() gave that epoch, maybe this one.
  void remember(const std::string& name, const detail::published_value& v, std::uint64_t epoch);
  void forget(const std::string& name);

 private:
  struct entry {
    detail::published_value value;
    std::set<net::node_id> remembered_by;
    bool is_withdrawn = false;  // and some of them may still remember it
  };
  struct awaited {
    strata::detail::condition_queue entered;
    unsigned waiters = 0;
  };
  static void wait(strata::detail::condition_queue& in,
                   std::unique_lock<strata::detail::spin_lock>& home, std::int64_t deadline_ns);
  void wait_for_name(const std::string& name, std::unique_lock<strata::detail::spin_lock>& home,
                     std::int64_t deadline_ns);
  void wake_all() noexcept;

  // Held briefly, by uninterrupted threads and by who handles messages, who cannot be suspended.
  // Who waits lets go of it as its stack is given up.
  strata::detail::spin_lock home_lock_;
  // A thousand may wait, each for a name of its own. An entry goes with its last waiter.
  std::unordered_map<std::string, awaited> awaited_;
  strata::detail::condition_queue members_changed_, withdrawn_;
  bool is_leaving_ = false;
  std::exception_ptr loss_;
  std::unordered_map<std::string, entry> home_;

  // From the time of the first one on, because a later process may have its number; 0: there was
  // none. Relaxed: a number only.
  std::atomic<std::uint64_t> publications_{0};

  std::mutex cache_mutex_;
  std::unordered_map<std::string, detail::published_value> cache_;
  std::uint64_t epoch_ = 0;
};

}  // namespace strata::messages
