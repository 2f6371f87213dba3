// SPDX-License-Identifier: Apache-2.0
// The lanes of one node, each to one endpoint of another node.
//
// Invariant: an endpoint has one lane, until that is forgotten. Only one that has ended is, and the
// latest of those are remembered: who sends there later is told at once, and who still has the lane
// hears of its end there.
//
// All functions may be called by any thread.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "messages/lane.hpp"
#include "net/wire.hpp"
#include "sync/spin_lock.hpp"

namespace strata::messages {

class lane_table {
 public:
  // That have ended and are remembered: so many at most in each part of the table.
  static constexpr std::size_t ended_max = 1024;

  lane_table();
  lane_table(const lane_table&) = delete;
  lane_table& operator=(const lane_table&) = delete;

  // Made if there is none. Throws std::bad_alloc, and then nothing has changed.
  std::shared_ptr<lane> to(endpoint_id target);
  // As to(), for as long as this thread asks for no other one and is not suspended.
  const std::shared_ptr<lane>& in_use(endpoint_id target);
  // Null where there is none. Of one that ends, room and searches may still be under way when it
  // has been forgotten: they must not make another one.
  [[nodiscard]] std::shared_ptr<lane> find(endpoint_id target) noexcept;

  // The endpoint has ended in that way, whether anything was ever sent there or not. Returns what
  // waited in its lane, to be ended without any lock.
  [[nodiscard]] match_list<request, 0> end(endpoint_id target, outcome how) noexcept;
  // The same for each lane to that node.
  [[nodiscard]] match_list<request, 0> end_all_to(net::node_id node, outcome how) noexcept;

  // Calls f(lane) for each, with its lock.
  template <class F>
  void for_each(F&& f) {
    for (part& p : parts_) {
      const std::lock_guard lock(p.lock);
      for (const auto& [target, l] : p.lanes) {
        const std::lock_guard one(l->lock);
        f(*l);
      }
    }
  }
  // Messages that went with their bytes, by lanes that are forgotten as well.
  [[nodiscard]] std::uint64_t eager();

 private:
  struct part {
    detail::spin_lock lock;  // before those of its lanes
    std::unordered_map<endpoint_id, std::shared_ptr<lane>> lanes;
    std::deque<endpoint_id> ended;  // of those in `lanes`, in that order
    std::uint64_t eager = 0;        // of lanes that are forgotten
  };
  [[nodiscard]] part& part_of(endpoint_id target) noexcept;
  // With the part's lock.
  static std::shared_ptr<lane> lane_in(part& p, endpoint_id target);
  static match_list<request, 0> end_in(part& p, lane& l, outcome how) noexcept;

  const std::uint64_t serial_;  // no other one of this process has it
  std::array<part, 16> parts_;
};

}  // namespace strata::messages
