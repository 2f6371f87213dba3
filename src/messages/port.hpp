// SPDX-License-Identifier: Apache-2.0
// One endpoint's state on its node, and all of them. A port is used again for later endpoints and
// never freed before its runtime, so whoever has an old name finds a port, and sees under its lock
// that the name is not the one that it has now. An endpoint that is open keeps all of them, and the
// messenger that has them, when the runtime ends. (Requirements P3, P4.)
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "messages/matching.hpp"
#include "messages/request.hpp"
#include "messages/turns.hpp"
#include "messages/wire.hpp"
#include "net/wire.hpp"
#include "sync/spin_lock.hpp"

namespace strata::messages {

// What somebody waits for at a port, and seeks among what waits with its senders on one node: see
// seeking.cpp.
struct search {
  std::uint32_t unanswered = 0;  // kind::seek
  bool again = false;            // then all that is waited for is sought anew
  std::vector<pattern> probed;   // meanwhile, by who does not wait
};

// What the nodes of senders have to be told. Taken with the port's lock, posted without.
struct room_notice {
  net::node_id to = 0;
  std::uint32_t bytes = 0;
  bool stuck = false;
  std::uint64_t number = 0;  // 0: nothing
};
struct seek {
  net::node_id to = 0;
  std::vector<sought_pattern> wanted;
};
struct news {
  std::vector<room_notice> rooms;
  std::vector<seek> sought;
};

struct alignas(64) port {
  detail::spin_lock lock;
  turns local_turns;                // of senders of this process
  std::uint32_t full_accounts = 0;  // those that keep stuck_bytes or more
  endpoint_id id;                   // none: closed
  posted_receives<request> receives;
  waiting_messages<arrival> messages;
  std::size_t local_bytes = 0;  // in messages, copied from senders of this process
  // By node, empty until a message comes from another one.
  struct account {
    std::uint32_t to_give = 0;  // room of messages received since room was last given back
    std::uint32_t kept = 0;     // by messages that wait for a receive: see keeps()
    bool told_stuck = false;
    bool known = false;  // a message has come from there
    std::uint64_t notices = 0;
    std::unique_ptr<search> seeks;  // null: nothing was ever sought there
  };
  std::vector<account> accounts;
  // Of all endpoints that it has been.
  struct counts {
    std::uint64_t from_here = 0;     // messages from this process
    std::uint64_t handed_over = 0;   // of those, not copied
    std::uint64_t copied_twice = 0;  // of those, kept in between
    std::uint64_t bytes_copied = 0;  // into buffers, and to be kept
  };
  counts counted;
  // Of the endpoints that it has been, those that ended with outcome::announced: few, since
  // something fails with each of them.
  std::vector<endpoint_id> announced;

  messages::messenger* messenger = nullptr;
  std::uint32_t number = 0;  // in the table
  std::uint32_t generation = 0;
};

class port_table {
 public:
  static constexpr unsigned number_bits = 24;
  static constexpr std::uint32_t ports_max = (1U << number_bits) - 1;
  // How many names a port has, one after the other; then nobody gets it any more.
  static constexpr std::uint32_t generations_max = (1U << 24) - 1;

  // An open port with a name that no endpoint has had. Null: there are ports_max.
  port* open(node_id_t node, messenger& of);
  // Its name is gone already. True: it was the last one, after end().
  [[nodiscard]] bool give_back(port& p) noexcept;
  // No more will be opened. True: none is open.
  [[nodiscard]] bool end();
  // The port that has, or had, this name; null: none of this node has ever had it. Any thread.
  [[nodiscard]] port* find(endpoint_id id) const noexcept;
  template <class F>
  void for_each(F&& f) {
    std::uint32_t made = 0;
    {
      const std::lock_guard lock(mutex_);
      made = made_;
    }
    for (std::uint32_t n = 0; n < made; ++n) f(*at(n));
  }

 private:
  // Twice as many in each chunk, so that one endpoint costs little.
  static constexpr unsigned first_bits = 4;
  static constexpr unsigned chunks = number_bits - first_bits + 1;
  [[nodiscard]] port* at(std::uint32_t number) const noexcept;

  std::mutex mutex_;
  // Release: the ports in it. Partner: at().
  std::array<std::atomic<port*>, chunks> chunk_{};
  std::array<std::unique_ptr<port[]>, chunks> owned_;
  std::uint32_t made_ = 0;
  std::vector<std::uint32_t> free_;  // with room for all that are made
  std::uint32_t spent_ = 0;          // that have had all their names
  bool is_over_ = false;
};

}  // namespace strata::messages
