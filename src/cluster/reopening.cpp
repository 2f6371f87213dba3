// SPDX-License-Identifier: Apache-2.0
#include "cluster/reopening.hpp"

#include <pthread.h>

#include <utility>

namespace strata::cluster {

reopening::reopening(net::tcp::identity me, doors d, std::size_t socket_buffer_bytes,
                     std::vector<line> lines)
    : lines_(std::move(lines)),
      meeting_(std::move(me), std::move(d.where), std::move(d.networks),
               {.socket_buffer_bytes = socket_buffer_bytes}) {}

std::optional<reopening::network> reopening::network_of(node_id n,
                                                        const net::transport* over) const noexcept {
  for (const line& l : lines_) {
    if (l.over == over) return l.networks[n];
  }
  return std::nullopt;
}

net::tcp::tcp_transport* reopening::line_to(node_id n, network over) const noexcept {
  for (const line& l : lines_) {
    if (n < l.networks.size() && l.networks[n] == over && l.over->reaches(n)) return l.over;
  }
  return nullptr;
}

void reopening::begin(hands& h) {
  thread_ = std::thread([this, &h] {
    pthread_setname_np(pthread_self(), "strata-reopen");
    meeting_.run(h);
  });
}

void reopening::connect(node_id n, network over, launch::address where) {
  meeting_.connect(n, over, std::move(where));
}

void reopening::stop() noexcept {
  meeting_.stop();
  if (thread_.joinable()) thread_.join();
}

}  // namespace strata::cluster
