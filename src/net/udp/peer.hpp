// SPDX-License-Identifier: Apache-2.0
// What a node knows of another one.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "net/udp/channel.hpp"
#include "net/udp/renewal_handshake.hpp"
#include "net/udp/udp_transport.hpp"

namespace strata::net::udp {

struct udp_transport::peer {
  peer(const settings& s, node_id id_, const target& where, const datagram_socket& from,
       std::size_t datagram_bytes_, const std::string& own_nonce, const std::string& its_nonce);
  // With inbox_ and `lock`, or before anybody knows it: nothing has been said or heard by the
  // connection with these nonces. Throws strata::error; it is what it was then.
  void begin(const settings& s, const renewal_handshake::terms& nonces);

  // With inbox_ and `lock`: it is lost, and nothing of it waits to be handed over. What it has for
  // a connection goes, until it begins another one: nodes may come and go while the job runs.
  void give_back_memory() noexcept {
    c->give_back_memory();
    std::vector<std::byte>().swap(outbox);
  }

  // Of one connection: for what we say, and for what it says.
  struct seals {
    seals(const settings& s, node_id n, const renewal_handshake::terms& nonces)
        : closes(s.key, s.job, s.self, n, nonces.mine, nonces.its),
          opens(s.key, s.job, n, s.self, nonces.its, nonces.mine) {}
    seal closes, opens;
  };

  const node_id id;
  const target to;
  const datagram_socket& socket;  // what goes there leaves by this one
  const std::size_t datagram_bytes;
  // Of connections that are made again (renewing.cpp): what we say about them, and what it says.
  const seal closes_words, opens_words;

  mutable std::mutex lock;
  // With `lock` held, but for the content of c->in().data(), which only whoever polls changes.
  std::unique_ptr<channel> c;
  // `opens`: whoever polls; it is changed with `lock`.
  std::optional<seals> keys;
  // Of the last connection that this node does without.
  std::optional<seals> declined;
  // Sealed datagrams, behind each other, that the kernel had no room for yet.
  std::vector<std::byte> outbox;
  std::array<std::size_t, batch_max> sizes{};
  std::size_t unsent = 0;
  std::uint32_t next_sequence_out = 0;
  burst quick;  // of what goes to it
  // What was written last waits for more until then; the same in ticks.
  std::int64_t collected_due_ns = never_ns;
  std::uint64_t collected_due_ticks = 0;
  bool refused = false;                  // try_send() has said would_block
  bool flush_wanted = false;             // flush() has said false
  std::int64_t end_limit_ns = never_ns;  // until then we wait for what it said before it left
  std::string why;                       // it is lost
  std::uint64_t messages_out = 0, bytes_out = 0, writes = 0;
  renewal_handshake meets;
  std::uint64_t next_word_out = 0;
  // Of that poll() is to tell.
  renewal_handshake::outcome untold = renewal_handshake::outcome::none;
  renewal_handshake::terms agreed{};

  // When something is to be done for it. Written with `lock` held. Partner: sleeper::alarm().
  std::atomic<std::int64_t> due_ns{never_ns};
  std::atomic<bool> collecting{false};  // a hint for who polls
  std::atomic<bool> lost{false};
  std::atomic<bool> dropped{false};  // its end is known already

  // Whoever polls.
  std::uint32_t next_sequence_in = 0;
  bool greeted = false;
  bool queued = false;  // in turns_
  bool heard = false;   // in heard_
  bool served = false;  // what has come from it is being handed over
  bool reported = false;
  std::uint64_t next_word_in = 0;
};

}  // namespace strata::net::udp
