// SPDX-License-Identifier: Apache-2.0
#include "net/udp/socket_set.hpp"

#include <netinet/in.h>

#include <bit>
#include <cstring>

#include "net/wait_for_events.hpp"
#include "strata/detail/check.hpp"

namespace strata::net::udp {
namespace {

std::vector<std::uint8_t> address_in(const target& t) {
  std::vector<std::uint8_t> bytes(t.where.ss_family == AF_INET6 ? sizeof(in6_addr)
                                                                : sizeof(in_addr));
  const auto* const at = reinterpret_cast<const std::byte*>(&t.where);
  std::memcpy(bytes.data(),
              at + (t.where.ss_family == AF_INET6 ? offsetof(sockaddr_in6, sin6_addr)
                                                  : offsetof(sockaddr_in, sin_addr)),
              bytes.size());
  return bytes;
}

// How many bits two addresses begin alike with; -1: they are of two kinds.
int bits_in_common(const target& a, const target& b) {
  if (a.where.ss_family != b.where.ss_family) return -1;
  const std::vector<std::uint8_t> x = address_in(a), y = address_in(b);
  int bits = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const int same = std::countl_zero(static_cast<std::uint8_t>(x[i] ^ y[i]));
    bits += same;
    if (same != 8) break;
  }
  return bits;
}

}  // namespace

socket_set::socket_set(const std::vector<std::string>& hosts) {
  STRATA_CHECK(!hosts.empty());
  std::vector<int> descriptors;
  for (const std::string& host : hosts) {
    all_.push_back(std::make_unique<datagram_socket>(host));
    own_.push_back(target_of(all_.back()->address()));
    descriptors.push_back(all_.back()->get());
  }
  if (all_.size() > 1) arrivals_ = epoll_on(descriptors);
}

const datagram_socket& socket_set::towards(const target& to) const {
  std::size_t best = 0;
  for (std::size_t i = 1; i < all_.size(); ++i) {
    if (bits_in_common(own_[i], to) > bits_in_common(own_[best], to)) best = i;
  }
  return *all_[best];
}

}  // namespace strata::net::udp
