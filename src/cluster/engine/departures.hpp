// SPDX-License-Identifier: Apache-2.0
// Who has gone from the job, and how this node's own part in it ends: what the engine's threads
// tell each other, and wait for, when it does. Any thread; who waits stops its OS thread. What a
// condition reads besides is kept elsewhere, and whoever changes that says so: see look_again().
#pragma once
#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <set>
#include <vector>

#include "net/wire.hpp"

namespace strata::cluster {

using net::node_id;

class departures {
 public:
  // Why this node's part ends.
  enum class cause { none, stopped, left, lost };

  // For a condition: with the lock.
  struct known {
    cause own = cause::none;        // the first counts
    std::vector<bool> gone{};       // by node: it has said goodbye, has left or is lost
    std::set<node_id> told_lost{};  // by the launcher
    bool gave_up_waiting = false;   // for the others to say goodbye

    // Not node 0, which waits for everybody and says none.
    [[nodiscard]] bool have_gone(const std::vector<node_id>& awaited) const {
      return std::all_of(awaited.begin(), awaited.end(),
                         [this](node_id n) { return n == 0 || gone[n]; });
    }
  };

  // Of numbers that a node can have.
  explicit departures(node_id nodes) { known_.gone.resize(nodes); }

  void end(cause how) {
    tell([&](known& k) {
      if (k.own == cause::none) k.own = how;
    });
  }
  // False: that was known.
  bool add(node_id n) {
    bool is_news = false;
    tell([&](known& k) {
      is_news = !k.gone[n];
      k.gone[n] = true;
    });
    return is_news;
  }
  void launcher_tells_of(node_id lost) {
    tell([&](known& k) { k.told_lost.insert(lost); });
  }
  // Something that conditions read elsewhere has changed.
  void look_again() {
    tell([](known&) {});
  }
  // `change` makes something true that may be waited for.
  template <class Change>
  void tell(Change change) {
    const std::lock_guard lock(mutex_);
    change(known_);
    changed_.notify_all();
  }

  [[nodiscard]] bool has_gone(node_id n) const {
    const std::lock_guard lock(mutex_);
    return known_.gone[n];
  }
  template <class Condition>
  [[nodiscard]] bool is(Condition is_so) const {
    const std::lock_guard lock(mutex_);
    return is_so(known_);
  }

  // Until `is_so(known)`.
  template <class Condition>
  void wait(Condition is_so) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return is_so(known_); });
  }
  // The same, but for no longer than that. Whether it is so.
  template <class Duration, class Condition>
  bool wait_for(Duration limit, Condition is_so) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, limit, [&] { return is_so(known_); });
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  known known_;
};

}  // namespace strata::cluster
