// SPDX-License-Identifier: Apache-2.0
// The sockets of a node, one on each of its networks that the job uses.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "net/udp/socket.hpp"
#include "os/descriptor.hpp"

namespace strata::net::udp {

class socket_set {
 public:
  // One at each of these numeric addresses, of which there is one at least. Throws
  // strata::user_error when one is none of this host.
  explicit socket_set(const std::vector<std::string>& hosts);

  [[nodiscard]] const std::vector<std::unique_ptr<datagram_socket>>& all() const noexcept {
    return all_;
  }
  // The one on the network of `to`: its address begins like that one, for longer than all others
  // do. What leaves by another one may be refused on its way, as if its source were false.
  [[nodiscard]] const datagram_socket& towards(const target& to) const;
  // Can be read when something has come to one of them.
  [[nodiscard]] int arrivals() const noexcept {
    return all_.size() == 1 ? all_.front()->get() : arrivals_.get();
  }

 private:
  std::vector<std::unique_ptr<datagram_socket>> all_;
  std::vector<target> own_;  // where each of them is
  os::descriptor arrivals_;  // epoll; unless there is only one
};

}  // namespace strata::net::udp
