// SPDX-License-Identifier: Apache-2.0
// What two nodes say to each other about another connection (renewal_handshake.hpp), and its bytes:
//
//   mark 4 | source 2 | destination 2 | number 8 | what it says 1 | zero 7
//   nonce of who asks 32 | nonce of the other one 32, zero in a call
//
// and behind it a seal. All are of one size, so nobody's answer is larger than what it answers.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "net/udp/seal.hpp"
#include "net/wire.hpp"

namespace strata::net::udp {

struct word {
  enum class step : std::uint8_t { call = 1, answer, confirm };
  step says = step::call;
  std::string of_who_asks{}, of_other{};  // nonces
};

struct word_head {
  std::uint32_t mark;
  node_id source;
  node_id destination;
  std::uint64_t number;  // of its source and destination: each later one has a larger one
  word::step says;
  std::uint8_t zero[7];
};
static_assert(sizeof(word_head) == 24);

inline constexpr std::uint32_t word_mark = 0x6d'54'52'53;  // "SRTm"
inline constexpr std::size_t word_bytes = sizeof(word_head) + 2 * nonce_bytes;
inline constexpr const char* word_seal = "strata meeting, udp 1";

// Whether it says to be one; nothing more is known then.
[[nodiscard]] bool is_word(std::span<const std::byte> datagram) noexcept;
// `into` has room for word_bytes and the tag. Seals it, and returns its size.
std::size_t write_word(const word& w, node_id source, node_id destination, std::uint64_t number,
                       const seal& closes, std::span<std::byte> into);
// Only for what is known to be of this job, and then only for routing: the rest is not checked.
[[nodiscard]] bool read_word_head(std::span<const std::byte> datagram, word_head& head) noexcept;
// False: altered, or of somebody else, or it is no word.
[[nodiscard]] bool read_word(std::span<const std::byte> datagram, const seal& opens, word& w);

}  // namespace strata::net::udp
