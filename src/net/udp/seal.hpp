// SPDX-License-Identifier: Apache-2.0
// By what a node knows that a datagram comes from the node that it names, in this job, unaltered.
// Each direction of each pair has a key of its own (pair_key.hpp), to which either side adds a
// fresh nonce. Each datagram ends with a Poly1305 tag under that key and its packet number
// (ChaCha20-Poly1305 of RFC 8439 with nothing to encrypt). A number is used once, as the cipher
// demands; what was heard before is known by its number (receiving.hpp), and what another run of
// the same nodes said by the nonces.
//
// The first nonces travel with the addresses over the launcher's line, which brings the job's key
// too: so there is no handshake to be disturbed, and the first datagram is authenticated like all
// others. A connection that is made again has others (renewal_handshake.hpp), so nothing that was
// said by one before is whole.
//
// What this does not give: nothing is encrypted.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "net/pair_key.hpp"

namespace strata::net::udp {

inline constexpr std::size_t nonce_bytes = 32;
inline constexpr std::size_t tag_bytes = 16;
inline constexpr const char* data_seal = "strata seal, udp 1";

[[nodiscard]] std::string fresh_nonce();

class seal {
 public:
  // Of what `source` says to `destination`; each purpose has keys of its own.
  seal(const launch::job_key& key, std::uint64_t job, node_id source, node_id destination,
       const std::string& source_nonce, const std::string& destination_nonce,
       const char* purpose = data_seal);
  ~seal();
  seal(seal&&) noexcept = default;
  seal& operator=(seal&&) noexcept = default;

  // Writes the tag behind the first `bytes` of `datagram`.
  void close(std::span<std::byte> datagram, std::size_t bytes, std::uint64_t number) const;
  [[nodiscard]] bool is_whole(std::span<const std::byte> datagram, std::uint64_t number) const;

 private:
  pair_key key_;
};

}  // namespace strata::net::udp
