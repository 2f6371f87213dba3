// SPDX-License-Identifier: Apache-2.0
#include "net/pair_key.hpp"

#include <sodium.h>

namespace strata::net {

static_assert(crypto_auth_hmacsha256_BYTES == std::tuple_size_v<pair_key>);
static_assert(crypto_auth_hmacsha256_KEYBYTES == std::tuple_size_v<launch::job_key>);

pair_key make_pair_key(const launch::job_key& key, const std::string& purpose, std::uint64_t job,
                       node_id source, node_id destination,
                       std::initializer_list<std::string> more) {
  struct {
    std::uint64_t job;
    std::uint32_t version;
    node_id source, destination;
  } const who{job, wire_version, source, destination};
  static_assert(sizeof who == 16, "no padding: every byte counts");
  crypto_auth_hmacsha256_state state;
  crypto_auth_hmacsha256_init(&state, key.data(), key.size());
  const auto say = [&](const void* from, std::size_t bytes) {
    crypto_auth_hmacsha256_update(&state, static_cast<const unsigned char*>(from), bytes);
  };
  say(purpose.c_str(), purpose.size() + 1);  // its end is told apart from what follows
  say(&who, sizeof who);
  for (const std::string& one : more) say(one.data(), one.size());
  pair_key made;
  crypto_auth_hmacsha256_final(&state, made.data());
  sodium_memzero(&state, sizeof state);
  return made;
}

}  // namespace strata::net
