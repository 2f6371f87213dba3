// SPDX-License-Identifier: Apache-2.0
// How two nodes of a job make sure of each other before either believes a byte of the other: both
// prove that they know the job's key, and agree on who they are. A state machine over bytes; it
// knows no sockets and no clock.
//
//   connector -> acceptor   hello      magic, nonce
//   acceptor -> connector   challenge  nonce
//   connector -> acceptor   proof      claims, MAC over everything so far
//   acceptor -> connector   verdict    welcome or a refusal, claims, MAC over everything so far
//
// Claims are: wire version, job, who speaks, to whom, how many nodes, build id. The MACs are
// HMAC-SHA-256 under the job's key, with a label for each direction, so that nobody's words can be
// played back to him; fresh nonces on both sides, so that yesterday's words are worth nothing. All
// messages have a fixed size: no length is read from a stranger.
//
// What a stranger learns: 32 random bytes, if it knows the magic; else nothing. It is cut off
// without a word, and so is who has the wrong key: both look the same to him. Who has proved the
// key is one of us, perhaps started from another build by mistake; the verdict tells him why he is
// refused, so that his process can say so. The connector speaks its claims to whoever listens at
// the address it was given: version, build id and node numbers are no secrets.
//
// What this does not give: messages after the handshake are neither encrypted nor authenticated.
// Who can alter packets between two nodes can alter a running job; loopback is the default.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "net/wire.hpp"

namespace strata::net::tcp {

inline constexpr std::size_t build_id_bytes_max = 64;

// What a node claims to be, and the key by which it proves it.
struct identity {
  std::uint64_t job = 0;
  std::array<std::uint8_t, 32> key{};
  node_id node = 0;
  node_id nodes = 1;
  std::string build_id;  // at most build_id_bytes_max characters
  std::uint32_t version = wire_version;
};

enum class refusal : std::uint8_t {
  none,
  not_strata,      // its first bytes are not ours
  wrong_key,       // it does not know the job's key, or somebody altered what it said
  other_version,   // it speaks another version of the wire
  other_build,     // it runs another program
  wrong_job,       // it belongs to another job that has the same key
  bad_node,        // its number or the number of nodes does not fit, or it looks for someone else
  duplicate_node,  // that node has already joined
};
[[nodiscard]] const char* name_of(refusal r) noexcept;

using nonce = std::array<std::uint8_t, 32>;
[[nodiscard]] nonce fresh_nonce();

class handshake {
 public:
  // `me` must outlive the handshake.
  static handshake connector(const identity& me, node_id peer, const nonce& n);
  // has_joined(node) tells whether a node has a connection already.
  static handshake acceptor(const identity& me, std::function<bool(node_id)> has_joined,
                            const nonce& n);

  enum class state {
    talking,  // there is something to send or to receive
    joined,   // both sides are sure of each other
    refused,  // reason() says why; close the connection
  };
  [[nodiscard]] state now() const noexcept;

  // What to send next, until it is empty; sent() takes off what has gone out.
  [[nodiscard]] std::span<const std::byte> outgoing() const noexcept;
  void sent(std::size_t bytes);

  // How many bytes to receive next, at most: what follows the handshake must stay in the socket.
  [[nodiscard]] std::size_t wanted() const noexcept;
  void received(std::span<const std::byte> bytes);

  // The other node: whom we connect to, or who has proved to be it. An acceptor knows it from the
  // proof on, even if it refuses.
  [[nodiscard]] bool proved() const noexcept { return proved_; }
  [[nodiscard]] node_id peer() const noexcept { return peer_; }
  [[nodiscard]] refusal reason() const noexcept { return reason_; }
  // For people: what is wrong with the other side ("runs another build (ab12), this node cd34").
  [[nodiscard]] std::string explanation() const;

 private:
  static constexpr std::size_t magic_bytes = 8;
  static constexpr std::size_t mac_bytes = 32;
  static constexpr std::size_t claims_bytes = 4 + 8 + 2 + 2 + 2 + 1 + build_id_bytes_max;
  static constexpr std::size_t hello_bytes = magic_bytes + 32;
  static constexpr std::size_t challenge_bytes = 32;
  static constexpr std::size_t proof_bytes = claims_bytes + mac_bytes;
  static constexpr std::size_t verdict_bytes = 1 + claims_bytes + mac_bytes;
  static constexpr std::size_t transcript_bytes =
      hello_bytes + challenge_bytes + proof_bytes + verdict_bytes;

  enum class step : std::uint8_t { hello, challenge, proof, verdict, over };

  struct claims {
    std::uint32_t version = 0;
    std::uint64_t job = 0;
    node_id node = 0;
    node_id peer = 0;
    node_id nodes = 0;
    std::string build_id;
  };

  handshake(const identity& me, bool connects, const nonce& n);
  [[nodiscard]] std::size_t step_bytes() const noexcept;
  [[nodiscard]] bool ours(step s) const noexcept;
  void next_step();
  void speak();
  void listen();
  void add_claims();
  void add_mac();
  [[nodiscard]] claims claims_at(std::size_t offset) const;
  [[nodiscard]] bool mac_is_right() const;
  [[nodiscard]] refusal judge(const claims& other) const;
  void refuse(refusal why);
  void add(const void* from, std::size_t bytes);

  const identity* me_;
  bool connects_;
  nonce nonce_;
  std::function<bool(node_id)> has_joined_;
  // Everything that was said, in the order of the steps; what is being sent or received is its end.
  std::array<std::byte, transcript_bytes> transcript_{};
  std::size_t begin_ = 0;  // of the present step
  std::size_t done_ = 0;   // sent or received so far
  std::size_t size_ = 0;   // written by us so far
  step step_ = step::hello;
  bool proved_ = false;
  node_id peer_ = 0;
  claims theirs_;
  refusal reason_ = refusal::none;
};

}  // namespace strata::net::tcp
