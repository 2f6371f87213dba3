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
  // One at each of these numeric addresses. Throws strata::user_error when there is none.
  explicit socket_set(const std::vector<std::string>& hosts);

  [[nodiscard]] const std::vector<std::unique_ptr<datagram_socket>>& all() const noexcept {
    return all_;
  }
  // The one at that address, as the system takes it for what goes somewhere; the first one if there
  // is none.
  [[nodiscard]] const datagram_socket& at(const std::string& host) const;
  // Can be read when something has come to one of them.
  [[nodiscard]] int arrivals() const noexcept {
    return all_.size() == 1 ? all_.front()->get() : arrivals_.get();
  }

 private:
  std::vector<std::unique_ptr<datagram_socket>> all_;
  std::vector<std::string> hosts_;  // of each, as the system writes it
  os::descriptor arrivals_;         // epoll; unless there is only one
};

}  // namespace strata::net::udp
