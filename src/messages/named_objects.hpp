// SPDX-License-Identifier: Apache-2.0
// The objects of a node that have names (strata::named), by number: who calls a function on one
// holds it meanwhile, and an object ends when nobody does.
//
// Invariant: what somebody holds exists.
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_map>

#include "sync/spin_lock.hpp"

namespace strata::messages {

// Any thread of the runtime, and any other.
class named_objects {
 public:
  // number: which no other object of the job has, or has had. mark: of its kind, if messages are
  // about it.
  void enter(std::uint64_t number, void* object, const void* mark);
  // The object, until let_go(); null: it has ended, or is about to.
  [[nodiscard]] void* hold(std::uint64_t number) noexcept;
  // The same; null if it is not of that kind.
  [[nodiscard]] void* hold(std::uint64_t number, const void* mark) noexcept;
  void let_go(std::uint64_t number) noexcept;
  // Of one that has been entered, once. From now on nobody takes hold of it; suspends until nobody
  // has it any more: true. False: somebody does, and that may last for ever, since the job has lost
  // a node; or the caller is a fiber, which cannot wait.
  [[nodiscard]] bool end(std::uint64_t number) noexcept;
  // The job has lost a node.
  void on_lost() noexcept;

 private:
  struct entry {
    void* object = nullptr;
    const void* mark = nullptr;
    std::uint64_t holders = 0;
    bool is_ending = false;
  };
  // Held briefly, by uninterrupted threads and by who handles messages. Who waits lets go of it as
  // its stack is given up.
  struct shard {
    strata::detail::spin_lock lock;
    std::unordered_map<std::uint64_t, entry> entries;
  };
  static constexpr std::size_t shards_in_all = 16;

  // Numbers of one node follow each other.
  template <class Fits>
  void* hold_if(std::uint64_t number, Fits fits) noexcept;
  [[nodiscard]] shard& shard_of(std::uint64_t number) noexcept {
    return shards_[number % shards_in_all];
  }
  static bool wait_for_holders(entry& e,
                               std::unique_lock<strata::detail::spin_lock>& lock) noexcept;

  std::array<shard, shards_in_all> shards_;
  std::atomic<bool> is_lost_{false};  // read with a shard's lock; see on_lost()
};

}  // namespace strata::messages
