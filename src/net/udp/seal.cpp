// SPDX-License-Identifier: Apache-2.0
#include "net/udp/seal.hpp"

#include <sodium.h>

#include <array>
#include <cstring>

#include "strata/detail/check.hpp"
#include "strata/error.hpp"

namespace strata::net::udp {

namespace {

static_assert(crypto_aead_chacha20poly1305_ietf_ABYTES == tag_bytes);
static_assert(crypto_aead_chacha20poly1305_ietf_KEYBYTES == std::tuple_size_v<pair_key>);

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

seal::seal(const launch::job_key& key, std::uint64_t job, node_id source, node_id destination,
           const std::string& source_nonce, const std::string& destination_nonce,
           const char* purpose) {
  STRATA_CHECK(sodium_init() >= 0);
  if (source_nonce.size() != nonce_bytes || destination_nonce.size() != nonce_bytes) {
    throw error("node " + std::to_string(source) + " or " + std::to_string(destination) +
                " has no UDP address");
  }
  key_ = make_pair_key(key, purpose, job, source, destination, {source_nonce, destination_nonce});
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
