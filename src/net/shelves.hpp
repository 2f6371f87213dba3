// SPDX-License-Identifier: Apache-2.0
// What nodes offer to others that can take it without their help: a capability of a transport.
#pragma once
#include <cstddef>
#include <span>

#include "net/wire.hpp"

namespace strata::net {

enum class take_outcome {
  taken,
  empty,
  malformed,  // what is there no node of this program has put there
};

struct taken_thing {
  take_outcome how = take_outcome::empty;
  unsigned place = 0;
  std::size_t bytes = 0;
  bool tell_owner = false;  // it does not look any more whether there is room, and there is
  // Of what was taken, where that is known: what the next one to take will change, and what it will
  // read.
  const void* next_word = nullptr;
  const void* next_place = nullptr;
};

class shelves {
 public:
  static constexpr unsigned places_max = 8;
  // Of one thing.
  static constexpr std::size_t bytes_max = 248;

  // ---- this node's own: one thread at a time, but for offered() ----
  // The place that it lies in now; places_max: more than `limit` would be there. Once that many are
  // there the shelf is unattended.
  virtual unsigned offer(std::span<const std::byte> bytes, unsigned limit) noexcept = 0;
  // The oldest, if nobody was faster; into bytes_max bytes. The shelf is unattended then.
  virtual taken_thing take_back(std::byte* into) noexcept = 0;
  // Whether this node looks if there is room. If not, whoever takes something when little is left
  // is asked to tell it, once.
  virtual void set_attended(bool attended) noexcept = 0;
  // How many things.
  [[nodiscard]] virtual unsigned offered() const noexcept = 0;

  // ---- a peer's; any thread ----
  // The oldest. Empty also for a peer that is lost or that has no shelf we can reach.
  virtual taken_thing take(node_id peer, std::byte* into) noexcept = 0;

 protected:
  ~shelves() = default;
};

}  // namespace strata::net
