// SPDX-License-Identifier: Apache-2.0
#include "net/ucx/pass.hpp"

#include <sodium.h>

#include <cstring>

namespace strata::net::ucx {

std::uint64_t pass_of(const job_key& key, std::uint64_t job, node_id source, node_id destination) {
  // Not one of the labels of tcp/handshake.cpp: what is said there is of no use here.
  constexpr char label[] = "strata pass, ucx 1";
  struct {
    std::uint64_t job;
    std::uint32_t version;
    node_id source, destination;
  } const said{job, wire_version, source, destination};
  static_assert(sizeof said == 16, "no padding: every byte counts");
  crypto_auth_hmacsha256_state state;
  std::array<unsigned char, crypto_auth_hmacsha256_BYTES> mac;
  crypto_auth_hmacsha256_init(&state, key.data(), key.size());
  crypto_auth_hmacsha256_update(&state, reinterpret_cast<const unsigned char*>(label),
                                sizeof label);
  crypto_auth_hmacsha256_update(&state, reinterpret_cast<const unsigned char*>(&said), sizeof said);
  crypto_auth_hmacsha256_final(&state, mac.data());
  sodium_memzero(&state, sizeof state);
  std::uint64_t pass;
  std::memcpy(&pass, mac.data(), sizeof pass);
  return pass;
}

}  // namespace strata::net::ucx
