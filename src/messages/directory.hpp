// SPDX-License-Identifier: Apache-2.0
// One node's part of the directory: the names that are at home here, and what it remembers of
// others'. (Requirement P3.)
//
// A name's home follows from its hash and the nodes that began the job. When such a node leaves,
// node 0 gets what it knows, and answers in its place from the moment it has heard that it left.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
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
  directory();

  // ---- on a name's home ----
  // False: it is taken, by another publication.
  bool enter(const std::string& name, const detail::published_value& v);
  // For node `asks`, which is told when the name is withdrawn. `waits`: until there is one, or this
  // node begins to leave.
  detail::published_value give(const std::string& name, net::node_id asks, bool waits);
  // The nodes that may remember it; nothing if there is no such name.
  bool remove(const std::string& name, std::set<net::node_id>& remembered_by);

  // ---- nodes that come and go ----
  // Suspends until this node is the home of names with that hash. For whoever has heard of a leaver
  // before node 0 has.
  void await_duty(const messenger& office, std::size_t hash);
  void members_have_changed();
  void begin_to_leave();
  // Whoever waits here, or will, throws `error`.
  void on_lost(const std::exception_ptr& error);
  // All that is at home here, in pieces of at most that size; and on node 0.
  [[nodiscard]] std::vector<std::vector<std::byte>> pack(std::size_t bytes_max);
  // Node numbers are below `nodes`. Throws malformed.
  void inherit(std::span<const std::byte> packed, net::node_id nodes);

  // ---- on every node ----
  // Which no other publication in the job has.
  [[nodiscard]] std::uint64_t new_publication(net::node_id self) noexcept;
  // What this node remembers; not found: nothing. `epoch`: see remember().
  detail::published_value recall(const std::string& name, std::uint64_t& epoch);
  // Unless a name has been withdrawn since recall() gave that epoch, maybe this one.
  void remember(const std::string& name, const detail::published_value& v, std::uint64_t epoch);
  void forget(const std::string& name);

 private:
  struct entry {
    detail::published_value value;
    std::set<net::node_id> remembered_by;
  };
  void wait(std::unique_lock<strata::detail::spin_lock>& home);
  void wake_all() noexcept { entered_.notify(UINT32_MAX); }

  // Held briefly, by uninterrupted threads and by who handles messages, who cannot be suspended.
  // Who waits lets go of it as its stack is given up.
  strata::detail::spin_lock home_lock_;
  strata::detail::condition_queue entered_;  // or somebody has left
  bool is_leaving_ = false;
  std::exception_ptr loss_;
  std::unordered_map<std::string, entry> home_;

  // From when this node began, because a later process may have its number. Relaxed: a number only.
  std::atomic<std::uint64_t> publications_;

  std::mutex cache_mutex_;
  std::unordered_map<std::string, detail::published_value> cache_;
  std::uint64_t epoch_ = 0;
};

}  // namespace strata::messages
