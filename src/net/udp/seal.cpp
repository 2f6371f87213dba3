// SPDX-License-Identifier: Apache-2.0
#include "net/udp/seal.hpp"

#include <sodium.h>

#include <cstring>

#include "strata/detail/check.hpp"
#include "strata/error.hpp"

namespace strata::net::udp {

namespace {

static_assert(crypto_aead_chacha20poly1305_ietf_ABYTES == tag_bytes);
static_assert(crypto_aead_chacha20poly1305_ietf_KEYBYTES == crypto_auth_hmacsha256_BYTES);

using cipher_nonce = std::array<unsigned char, crypto_aead_chacha20poly1305_ietf_NPUBBYTES>;

cipher_nonce nonce_of(std::uint64_t number) {
  cipher_nonce n{};
  std::memcpy(n.data() + n.size() - sizeof number, &number, sizeof number);
  return n;
}

const unsigned char* bytes_of(const std::byte* p) {
  return reinterpret_cast<const unsigned char*>(p);
}

}  // namespace

std::string fresh_nonce() {
  STRATA_CHECK(sodium_init() >= 0);  // fails only without a source of randomness
  std::string nonce(nonce_bytes, '\0');
  randombytes_buf(nonce.data(), nonce.size());
  return nonce;
}

seal::seal(const job_key& key, std::uint64_t job, node_id source, node_id destination,
           const std::string& source_nonce, const std::string& destination_nonce) {
  STRATA_CHECK(sodium_init() >= 0);
  if (source_nonce.size() != nonce_bytes || destination_nonce.size() != nonce_bytes) {
    throw error("node " + std::to_string(source) + " or " + std::to_string(destination) +
                " has no UDP address");
  }
  // Not one of the labels of tcp/handshake.cpp or ucx/pass.cpp: what is said there is of no use
  // here.
  constexpr char label[] = "strata seal, udp 1";
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
  say(label, sizeof label);
  say(&who, sizeof who);
  say(source_nonce.data(), nonce_bytes);
  say(destination_nonce.data(), nonce_bytes);
  crypto_auth_hmacsha256_final(&state, key_.data());
  sodium_memzero(&state, sizeof state);
}

seal::~seal() { sodium_memzero(key_.data(), key_.size()); }

void seal::close(std::span<std::byte> datagram, std::size_t bytes, std::uint64_t number) const {
  STRATA_CHECK(bytes + tag_bytes <= datagram.size(), bytes, datagram.size());
  const cipher_nonce n = nonce_of(number);
  unsigned char nothing[1] = {};
  crypto_aead_chacha20poly1305_ietf_encrypt_detached(
      nothing, reinterpret_cast<unsigned char*>(datagram.data() + bytes), nullptr, nullptr, 0,
      bytes_of(datagram.data()), bytes, nullptr, n.data(), key_.data());
}

bool seal::is_whole(std::span<const std::byte> datagram, std::uint64_t number) const {
  if (datagram.size() < tag_bytes) return false;
  const std::size_t bytes = datagram.size() - tag_bytes;
  const cipher_nonce n = nonce_of(number);
  unsigned char nothing[1] = {};
  return crypto_aead_chacha20poly1305_ietf_decrypt_detached(
             nothing, nullptr, nothing, 0, bytes_of(datagram.data() + bytes),
             bytes_of(datagram.data()), bytes, n.data(), key_.data()) == 0;
}

}  // namespace strata::net::udp
