// SPDX-License-Identifier: Apache-2.0
// One node's part of the directory: the names that are at home here, and what it remembers of
// others'. (Requirement P3.)
#pragma once
#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>

#include "net/wire.hpp"
#include "strata/condition_variable.hpp"
#include "strata/directory.hpp"
#include "strata/mutex.hpp"

namespace strata::messages {

class directory {
 public:
  // ---- on a name's home ----
  // False: it is taken.
  bool enter(const std::string& name, const detail::published_value& v);
  // For node `asks`, which is told when the name is withdrawn. `waits`: until there is one.
  detail::published_value give(const std::string& name, net::node_id asks, bool waits);
  // The nodes that may remember it; nothing if there is no such name.
  bool remove(const std::string& name, std::set<net::node_id>& remembered_by);

  // ---- on every node ----
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
  mutex home_mutex_;
  condition_variable entered_;
  std::unordered_map<std::string, entry> home_;

  std::mutex cache_mutex_;
  std::unordered_map<std::string, detail::published_value> cache_;
  std::uint64_t epoch_ = 0;
};

}  // namespace strata::messages
