// SPDX-License-Identifier: Apache-2.0
// Who connects to this node and has not proved anything yet: so many at most, each for so long. One
// more pushes out the oldest.
#pragma once
#include <poll.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <vector>

#include "net/tcp/conversation.hpp"
#include "net/tcp/mesh_ground.hpp"
#include "net/tcp/socket.hpp"

namespace strata::net::tcp {

class unauthenticated {
 public:
  struct limits {
    std::size_t most = 256;
    std::int64_t each_ns = 2'000'000'000;
  };
  // Who proves to be a node of whom has_joined() says yes is refused. All of it outlives this.
  unauthenticated(const identity& me, std::span<const listener> doors, limits l,
                  mesh_ground& ground, std::function<bool(node_id)> has_joined);

  // Who has had his time is cut off.
  void drop_late(std::int64_t now_ns);
  // What to wait for, and until when at the latest.
  void add_to(std::vector<pollfd>& polled, std::int64_t now_ns, std::int64_t& until_ns);
  // After the wait for all that add_to() has added: joined(c, door) has become a node that speaks
  // over c.socket, which it may take; refused(c) is cut off.
  template <class Joined, class Refused>
  void look(std::span<const pollfd> polled, std::int64_t now_ns, Joined joined, Refused refused) {
    std::size_t i = first_polled_;
    std::erase_if(all_, [&](stranger& s) {
      if (polled[i++].revents == 0) return false;
      const conversation::progress how = s.talk.advance();
      if (how == conversation::progress::joined) joined(s.talk, s.door);
      if (how == conversation::progress::refused) refused(s.talk);
      return how != conversation::progress::waiting;
    });
    for (std::size_t d = 0; d < doors_polled_; ++d) {
      if (polled[first_door_ + d].revents != 0) accept_all(d, now_ns);
    }
  }
  // There was no descriptor for the last of them.
  [[nodiscard]] bool has_run_out() const noexcept { return listen_again_ns_ != 0; }

 private:
  struct stranger {
    conversation talk;
    std::size_t door;
  };
  void accept_all(std::size_t door, std::int64_t now_ns);

  const identity& me_;
  const std::span<const listener> doors_;
  const limits limits_;
  mesh_ground& ground_;
  const std::function<bool(node_id)> has_joined_;
  std::deque<stranger> all_;  // oldest first, so the first limit is the first's
  std::int64_t listen_again_ns_ = 0;
  std::size_t first_door_ = 0, doors_polled_ = 0, first_polled_ = 0;
};

}  // namespace strata::net::tcp
