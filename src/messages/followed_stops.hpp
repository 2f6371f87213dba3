// SPDX-License-Identifier: Apache-2.0
// What this node knows of the stops of other nodes (strata/shared_stop.hpp), by their numbers.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "strata/mutex.hpp"
#include "strata/stop_token.hpp"
#include "sync/spin_lock.hpp"

namespace strata::messages {

struct followed_stop {
  stop_source here;
  mutex asking;               // held while the other node is asked
  bool is_forgotten = false;  // with `asking`: it is not in the table any more, and tells nobody
  // That node tells this one. Release, after the answer; partner: acquire of who takes a token
  // without asking.
  std::atomic<bool> is_told{false};
};

// Any thread of the runtime.
class followed_stops {
 public:
  // That of this number, made if there is none.
  [[nodiscard]] std::shared_ptr<followed_stop> of(std::uint64_t number);
  // Null: this node has no token of it.
  [[nodiscard]] std::shared_ptr<followed_stop> find(std::uint64_t number) noexcept;
  void forget(std::uint64_t number) noexcept;
  // For tests.
  [[nodiscard]] std::size_t size() noexcept;

 private:
  // Held briefly, by uninterrupted threads.
  strata::detail::spin_lock lock_;
  std::unordered_map<std::uint64_t, std::shared_ptr<followed_stop>> stops_;
};

}  // namespace strata::messages
