// SPDX-License-Identifier: Apache-2.0
// What a node has connected to others with, over each part of what it listens with
// (own_sockets.hpp), before anything is sent.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cluster/opening/own_sockets.hpp"
#include "cluster/opening/surveyor.hpp"
#include "launch/address.hpp"
#include "net/addressed.hpp"
#include "net/tcp/mesh.hpp"
#include "net/tcp/options.hpp"
#include "net/tcp/tcp_transport.hpp"
#include "net/wire.hpp"
#include "os/descriptor.hpp"

namespace strata::cluster {

using net::node_id;

// Over one part.
class connected {
 public:
  using troubles = std::map<node_id, std::string>;
  connected(std::vector<os::descriptor> sockets, troubles why)
      : sockets_(std::move(sockets)), why_(std::move(why)) {}
  explicit connected(std::unique_ptr<net::addressed_transport> all) : addressed_(std::move(all)) {}
  // Until leave_alone() threads answer what others still say to connect. Over TCP the kernel does.
  void tend(node_id self, node_id nodes);
  void leave_alone();
  // What has ended in between.
  [[nodiscard]] const std::vector<ended_connection>& ended() const noexcept { return ended_; }
  [[nodiscard]] bool reaches(node_id n) const noexcept {
    return addressed_ != nullptr ? addressed_->reaches(n) : n < sockets_.size() && sockets_[n];
  }
  // Why it could not be reached, if anything is known of that.
  [[nodiscard]] std::string trouble_with(node_id n) const {
    const auto found = why_.find(n);
    return found != why_.end() ? found->second : std::string();
  }
  void drop(node_id n) noexcept;

  // From now on that is what sends. Not while it is tended.
  struct transport {
    std::unique_ptr<net::transport> over;
    net::tcp::tcp_transport* tcp = nullptr;         // it, or null
    net::addressed_transport* addressed = nullptr;  // the same
  };
  transport begin(node_id self, const net::tcp::options& o) &&;

 private:
  std::vector<os::descriptor> sockets_{};
  troubles why_{};
  std::unique_ptr<net::addressed_transport> addressed_{};
  std::vector<ended_connection> ended_{};
  std::unique_ptr<surveyor> care_{};  // after what it uses, so that it goes first
};

// `partly`: the job does without those who cannot be reached within a part of the time that it has
// to start, because of a firewall for example. What has connected is tended then: who has heard all
// of its own may still have to be heard by one of them, while another part waits or all agree.
struct connecting {
  net::tcp::identity me;
  std::int64_t began_ns = 0, start_limit_ns = 0;
  std::size_t socket_buffer_bytes = 0;
  net::tidings meanwhile{};  // look() by one thread at a time
  bool partly = false;
  std::int64_t patience_ns = 0;  // then; 0: that part of the time
};
enum class which { first, spare };
// Over all parts at once, to all addresses of the directory of each, by node; neither port nor
// worker: nobody. Throws what connect_mesh() and addressed_transport::connect() do, the first of
// it, as soon as that is known.
std::vector<connected> connect(std::vector<part>& parts, which w,
                               const std::vector<std::vector<launch::address>>& directories,
                               const connecting& how);
// What f does together with the other nodes. It fails somehow when the process of one of them has
// ended, and then mostly that of another one has, before: the launcher knows which, and tells all.
// So what look() throws within a moment goes before what f has thrown, unless that is a user's
// mistake.
void or_hear_why(const connecting& how, const std::function<void()>& f);

}  // namespace strata::cluster
