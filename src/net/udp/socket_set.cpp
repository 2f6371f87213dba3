// SPDX-License-Identifier: Apache-2.0
#include "net/udp/socket_set.hpp"

#include <algorithm>

#include "net/wait_for_events.hpp"
#include "strata/detail/check.hpp"

namespace strata::net::udp {

socket_set::socket_set(const std::vector<std::string>& hosts) {
  STRATA_CHECK(!hosts.empty());
  std::vector<int> descriptors;
  for (const std::string& host : hosts) {
    all_.push_back(std::make_unique<datagram_socket>(host));
    hosts_.push_back(all_.back()->address().host);
    descriptors.push_back(all_.back()->get());
  }
  if (all_.size() > 1) arrivals_ = epoll_on(descriptors);
}

const datagram_socket& socket_set::at(const std::string& host) const {
  const auto found = std::find(hosts_.begin(), hosts_.end(), host);
  return *all_[found == hosts_.end() ? 0 : static_cast<std::size_t>(found - hosts_.begin())];
}

}  // namespace strata::net::udp
