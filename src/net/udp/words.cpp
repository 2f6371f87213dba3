// SPDX-License-Identifier: Apache-2.0
#include "net/udp/words.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "strata/detail/check.hpp"

namespace strata::net::udp {

bool is_word(std::span<const std::byte> datagram) noexcept {
  std::uint32_t mark = 0;
  if (datagram.size() < sizeof mark) return false;
  std::memcpy(&mark, datagram.data(), sizeof mark);
  return mark == word_mark;
}

std::size_t write_word(const word& w, node_id source, node_id destination, std::uint64_t number,
                       const seal& closes, std::span<std::byte> into) {
  STRATA_CHECK(w.of_who_asks.size() == nonce_bytes, w.of_who_asks.size());
  STRATA_CHECK(w.of_other.empty() || w.of_other.size() == nonce_bytes, w.of_other.size());
  const word_head head{word_mark, source, destination, number, w.says, {}};
  std::array<char, 2 * nonce_bytes> nonces{};
  std::copy(w.of_who_asks.begin(), w.of_who_asks.end(), nonces.begin());
  std::copy(w.of_other.begin(), w.of_other.end(), nonces.begin() + nonce_bytes);
  std::memcpy(into.data(), &head, sizeof head);
  std::memcpy(into.data() + sizeof head, nonces.data(), nonces.size());
  closes.close(into, word_bytes, number);
  return word_bytes + tag_bytes;
}

bool read_word_head(std::span<const std::byte> datagram, word_head& head) noexcept {
  if (datagram.size() != word_bytes + tag_bytes || !is_word(datagram)) return false;
  std::memcpy(&head, datagram.data(), sizeof head);
  return true;
}

bool read_word(std::span<const std::byte> datagram, const seal& opens, word& w) {
  word_head head;
  if (!read_word_head(datagram, head) || !opens.is_whole(datagram, head.number)) return false;
  if (head.says < word::step::call || head.says > word::step::confirm ||
      std::any_of(std::begin(head.zero), std::end(head.zero), [](auto b) { return b != 0; }))
    return false;
  const auto* const nonces = reinterpret_cast<const char*>(datagram.data() + sizeof head);
  w.says = head.says;
  w.of_who_asks.assign(nonces, nonce_bytes);
  w.of_other.clear();
  if (w.says != word::step::call) w.of_other.assign(nonces + nonce_bytes, nonce_bytes);
  return true;
}

}  // namespace strata::net::udp
