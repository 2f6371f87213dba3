// SPDX-License-Identifier: Apache-2.0
// Who is still there. Each node tells the next one in a ring that it lives, and watches the one
// before; any message counts as a sign of life. A node that is silent for too long is lost, and
// everybody is told. Costs one message per node and beat, however many nodes there are. Who comes
// watches nobody, but tells node 0, whose ring it is in before it hears so.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "cluster/words/codec.hpp"
#include "cluster/words/surroundings.hpp"

namespace strata::cluster {

class liveness {
 public:
  using loss = std::function<void(node_id, const std::string& why)>;

  // Silence of limit_ns is a loss, which `lost` is told of; also of losses that others found.
  liveness(mailer& mail, const clock& time, std::int64_t limit_ns, loss lost);

  // How often beat() is to be called.
  [[nodiscard]] std::int64_t beat_ns() const noexcept;
  // `listening`: whether this node has looked at what arrived since the last beat; if not, silence
  // proves nothing.
  void beat(bool listening);
  // A message has come.
  void heard_of(node_id n) noexcept;
  // Somebody has come or left.
  void members_have_changed();
  // Tells everybody else.
  void tell(node_id lost, const std::string& why);

  bool on_message(node_id from, kind k, reader r);

 private:
  mailer& mail_;
  const clock& time_;
  const std::int64_t limit_ns_;
  const loss lost_;
  void find_neighbours();

  node_id next_;
  node_id before_;
  // Of the node before: something since the last beat; and at which beat. The clock is not read for
  // each message: small ones come every 250 ns.
  std::atomic<bool> heard_{false};
  std::atomic<std::int64_t> heard_at_;
  std::int64_t beat_at_;
};

}  // namespace strata::cluster
