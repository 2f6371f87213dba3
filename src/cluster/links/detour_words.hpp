// SPDX-License-Identifier: Apache-2.0
// What nodes say about a connection that has ended, and what goes around one begins with.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "cluster/words/codec.hpp"
#include "net/wire.hpp"

namespace strata::cluster::detour_words {

using net::node_id;

// What a word about a connection is made of.
struct word {
  node_id lower, higher;
  std::uint32_t number;
};

// So many messages have come over that connection.
struct count_word {
  std::uint64_t come;
  std::uint32_t number;
};

inline writer packed(const word& w) {
  writer out;
  out.add(w.lower).add(w.higher).add(w.number);
  return out;
}
inline writer packed(const count_word& c) {
  writer out;
  out.add(c.come).add(c.number);
  return out;
}
inline word take_word(reader& r, node_id nodes) {
  word w{};
  w.lower = r.take<node_id>();
  w.higher = r.take<node_id>();
  w.number = r.take<std::uint32_t>();
  if (w.lower >= w.higher || w.higher >= nodes || w.number == 0 || !r.empty())
    throw malformed("a word about no connection");
  return w;
}
inline count_word take_count(reader& r) {
  count_word c{};
  c.come = r.take<std::uint64_t>();
  c.number = r.take<std::uint32_t>();
  if (c.number % 2 != 0 || !r.empty()) throw malformed("a longer word about a connection");
  return c;
}

// Of what goes around, before the nodes after its source.
struct head {
  node_id source;
  net::message_kind k;
  std::uint16_t at;    // whose turn it is
  std::uint16_t hops;  // so many nodes follow
};

// With what has to go around again on its way there is still room for the payload: see
// heads_of_networks.
inline constexpr std::size_t hops_max = 24;

inline std::vector<std::byte> pack(const head& h, const std::vector<node_id>& way) {
  std::vector<std::byte> both(sizeof h + way.size() * sizeof(node_id));
  std::memcpy(both.data(), &h, sizeof h);
  std::memcpy(both.data() + sizeof h, way.data(), way.size() * sizeof(node_id));
  return both;
}

}  // namespace strata::cluster::detour_words
