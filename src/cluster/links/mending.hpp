// SPDX-License-Identifier: Apache-2.0
// When connections that have ended are made again, whether the two go on by another network that
// they share or by other nodes: the one with the higher number tries, a second after the end, then
// at twice the pause each time, up to half a minute. One that ends again soon after it was made
// goes on with the pause that it had. (Requirement P12.)
//
// Nothing goes by a spare connection, so nobody would notice its end. Both ends say something by it
// every few seconds, and who has heard nothing by it for some of these times gives it up: it is
// made again as any other.
//
// It knows no sockets: the runtime's are those of reopening.hpp. Called with the inbox.
#pragma once
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "net/wire.hpp"

namespace strata::cluster {

using net::node_id;

class mending {
 public:
  using network = std::uint16_t;
  struct settings {
    std::int64_t pause_ns = 1'000'000'000, pause_max_ns = 30'000'000'000;
    std::int64_t look_ns = 5'000'000'000;  // after the spare connections
  };
  class hands {
   public:
    // Tries to connect to n over that network; failed() or made() follows. False: not now, as it is
    // not clear how the two go on, or nothing is tried there any more.
    virtual bool connect_again(node_id n, network over) = 0;
    // Those that can be made again, by node.
    [[nodiscard]] virtual std::vector<node_id> spares() = 0;
    // What the other end hears by it, which tells that it does.
    virtual void speak_by_spare(node_id n) = 0;
    virtual void give_up_spare(node_id n) = 0;

   protected:
    ~hands() = default;
  };
  mending(node_id self, const settings& s, hands& h, std::int64_t now_ns)
      : self_(self), settings_(s), hands_(h), look_at_(now_ns + s.look_ns) {}

  // The connection over that network has ended; there is one again; an attempt was in vain.
  void lost(node_id n, network over, std::int64_t now_ns);
  void made(node_id n, network over, std::int64_t now_ns);
  void failed(node_id n, network over, std::int64_t now_ns);
  // n has said something by its spare connection.
  void heard_by_spare(node_id n) { silent_looks_.erase(n); }
  // Nobody goes on with n.
  void forget(node_id n);
  // Does what is due. Returns when something is next.
  std::int64_t on_time(std::int64_t now_ns);

 private:
  struct seam {
    bool is_open = false;   // there is none
    bool is_tried = false;  // now
    std::int64_t pause_ns = 0, next_ns = 0, made_ns = 0;
  };
  void look_after_spares();

  static constexpr unsigned silent_looks_max = 2;
  const node_id self_;
  const settings settings_;
  hands& hands_;
  std::int64_t look_at_;
  std::map<std::pair<node_id, network>, seam> seams_;
  std::map<node_id, unsigned> silent_looks_;  // at its spare connection, one after the other
};

}  // namespace strata::cluster
