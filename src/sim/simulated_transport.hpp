// SPDX-License-Identifier: Apache-2.0
// The transport between simulated nodes: messages in frames, frames in packets of a reliable
// channel, packets over a simulated network that loses, doubles, reorders and is cut. All of a
// simulation has one thread: nobody sleeps in a wait, but is called when there is something to do.
//
//   credits  a node gives another so many bytes at most that the program there has not taken in
//            (and the message that goes beyond). Each packet says how many have been taken in of
//            what came the other way; so does an empty one when half of them have
//   staged   messages that follow each other at once wait for each other a little, if that is
//            wanted, and leave in one packet
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "net/reliable.hpp"
#include "net/transport.hpp"
#include "sim/world.hpp"

namespace strata::sim {

class simulated_transport;

// What the ends of one kind of connection share: who is where, and what passes nothing any more.
class wires {
 public:
  struct settings {
    net::reliable_channel::settings channel{};
    std::size_t credits_bytes = std::size_t{256} << 10;  // from one node to another
    std::int64_t staged_ns = 0;  // for so long a message waits for others; 0: not at all
    bool may_break = false;      // a connection may end though both its nodes live
    // Who sends by a connection that the other end has given up hears of its end, as over TCP.
    bool tells_of_ends = false;
  };
  wires(world& w, const settings& s) : in(w), how(s) {}

  // Nothing passes between the two any more, and nobody hears of it.
  void silence(node_id a, node_id b) { silent_.insert(std::minmax(a, b)); }
  // Until then. Connections that nobody has given up go on.
  void restore(node_id a, node_id b) { silent_.erase(std::minmax(a, b)); }
  [[nodiscard]] bool is_silent(node_id a, node_id b) const {
    return !silent_.empty() && silent_.contains(std::minmax(a, b));
  }

  world& in;
  const settings how;

 private:
  friend class simulated_transport;
  [[nodiscard]] simulated_transport* find(node_id n) const noexcept {
    return n < all_.size() ? all_[n] : nullptr;
  }
  std::vector<simulated_transport*> all_;  // by node
  std::set<std::pair<node_id, node_id>> silent_;
};

class simulated_transport final : public net::transport {
 public:
  // The node that it belongs to.
  class hands {
   public:
    // When a packet leaves that is handed over now.
    [[nodiscard]] virtual std::int64_t departs_ns() = 0;
    [[nodiscard]] virtual bool shares_network_with(const simulated_transport& t,
                                                   node_id peer) const = 0;
    // poll() has something to hand over. Said again with each arrival.
    virtual void on_arrival(simulated_transport& t) = 0;
    // What wait_for_room() waits for has happened: what was refused is to be tried again, what is
    // staged to be flushed.
    virtual void on_room(simulated_transport& t) = 0;

   protected:
    ~hands() = default;
  };

  // Both live longer, but for what is still planned in the world.
  simulated_transport(wires& w, node_id self, hands& h);
  ~simulated_transport() override;
  simulated_transport(const simulated_transport&) = delete;
  simulated_transport& operator=(const simulated_transport&) = delete;

  [[nodiscard]] net::capabilities about() const noexcept override {
    return {.reliable = true, .name = "sim", .may_break = wires_.how.may_break};
  }
  [[nodiscard]] bool reaches(node_id peer) const noexcept override {
    return peer != self_ && hands_.shares_network_with(*this, peer);
  }
  [[nodiscard]] net::send_outcome try_send(node_id peer, net::header h,
                                           std::span<const std::byte> head,
                                           std::span<const std::byte> body) override;
  [[nodiscard]] bool flush(node_id peer) override;
  std::size_t poll(net::receiver& r, std::size_t messages_max) override;
  // There is no thread that could sleep.
  void wait_for_messages(std::int64_t timeout_ns) override;
  void wait_for_room(std::int64_t timeout_ns) override;
  void wake_receiver() noexcept override;
  void wake_sender() noexcept override;
  void drop(node_id peer) noexcept override;
  [[nodiscard]] traffic counted() const noexcept override { return counted_; }

  // The connection to that one has ended: poll() says so, behind all that has come.
  void lose(node_id peer, const std::string& why);
  // A new connection to that one, in place of one that was dropped; the other end begins with the
  // same number, which is greater than those before, earlier or later.
  void restart(node_id peer, std::uint32_t connection);
  // This end does not want that connection, of which the other one hears when it uses it.
  void refuse(node_id peer, std::uint32_t connection) {
    std::uint32_t& last = line_to(peer).refused;
    last = std::max(last, connection);
  }
  // This node does and hears nothing any more, and what it has sent does not arrive.
  void crash() noexcept { has_crashed_ = true; }
  // The connection to that one has neither been dropped nor ended.
  [[nodiscard]] bool is_open(node_id peer) const;
  // The most that was ever given to one peer and not known to be taken in there.
  [[nodiscard]] std::size_t most_under_way() const noexcept { return most_under_way_; }

 private:
  struct line {
    std::unique_ptr<net::reliable_channel> channel;
    std::uint32_t number = 0, refused = 0;  // of the connection: see restart() and refuse()
    std::int64_t timer_at = INT64_MAX;
    std::uint32_t next_out = 0, next_in = 0;  // sequence numbers
    std::size_t under_way = 0;  // bytes given to the peer and not known to be taken in there
    std::size_t taken_in = 0;   // bytes that it gave and does not know to be
    std::int64_t sent_at = -1;
    bool refuses = false;
    bool has_ended = false;   // nothing is sent or comes any more
    bool is_dropped = false;  // nor is handed over
    std::vector<std::byte> staged{};
  };
  struct arrival {
    node_id from;
    std::uint32_t connection;
    std::vector<std::byte> packet{};
    std::size_t read = 0;    // of it
    std::string ended_by{};  // not empty: the connection has
  };
  [[nodiscard]] line& line_to(node_id peer);
  void transmit(node_id peer, const net::reliable_channel::packet& p);
  void send_staged(node_id peer, line& l);
  void on_packet(node_id from, std::uint32_t connection, const net::reliable_channel::packet& p);
  void take_packet(node_id from, std::span<const std::byte> packet);
  [[nodiscard]] bool hand_over_next(net::receiver& r, arrival& a);
  void have_taken_in(node_id from, line& l, std::size_t bytes);
  void watch(node_id peer);

  wires& wires_;
  world& in_;
  const node_id self_;
  hands& hands_;
  std::unordered_map<node_id, line> lines_;  // made when first used
  std::deque<arrival> inbox_;
  bool has_crashed_ = false;
  bool room_is_planned_ = false;
  std::size_t most_under_way_ = 0;
  traffic counted_{};
};

}  // namespace strata::sim
