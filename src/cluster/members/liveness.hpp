// SPDX-License-Identifier: Apache-2.0
// Who is still there. Each node tells the next one in a ring that it lives, and watches the one
// before; any message counts as a sign of life. A node that is silent for too long is lost, and
// everybody is told. Costs one message per node and beat, however many nodes there are.
//
// Who comes tells node 0 that it lives, whose ring it is in before it hears so, but watches nobody
// before all know it. Until it says that it does, the two that it comes between go on as before,
// too: else the one before it would be watched by nobody, and a comer that waits for its answer
// would wait for ever.
//
//   comer -> the next  heartbeat  with a byte: I watch nobody yet
//   comer -> both      heartbeat  without: I do
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
  // One that this node watches: something has come since the last beat; and at which beat. The
  // clock is not read for each message: small ones come every 250 ns.
  struct watched {
    watched(node_id n, std::int64_t now_ns) noexcept : node(n), heard_at(now_ns) {}
    node_id node;  // this one: nobody
    std::atomic<bool> heard{false};
    std::atomic<std::int64_t> heard_at;
  };
  void find_neighbours();
  void tell_that_we_live(node_id n);
  void look_at(watched& one, bool proves_nothing);

  node_id next_;
  watched before_;
  // While one comes between: those that these were before.
  node_id next_but_one_;
  watched before_but_one_;
  bool has_told_before_;  // that this node watches it
  std::int64_t beat_at_;
};

}  // namespace strata::cluster
