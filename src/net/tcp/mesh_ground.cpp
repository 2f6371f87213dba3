// SPDX-License-Identifier: Apache-2.0
#include "net/tcp/mesh_ground.hpp"

#include "net/tcp/socket.hpp"
#include "os/clock.hpp"

namespace strata::net::tcp {
namespace {

class system_ground final : public mesh_ground {
 public:
  std::int64_t now_ns() override { return os::now_ns(); }
  os::descriptor connect(const launch::address& to, std::size_t buffer_bytes) override {
    return connect_to(to, buffer_bytes);
  }
  os::descriptor accept(int door, std::string& from) override { return accept_from(door, from); }
  int wait(std::span<pollfd> what, std::int64_t limit_ns) override {
    const timespec pause{limit_ns / 1'000'000'000, limit_ns % 1'000'000'000};
    return ::ppoll(what.data(), what.size(), &pause, nullptr);
  }
};

}  // namespace

mesh_ground* solid_ground() noexcept {
  static system_ground only;
  return &only;
}

}  // namespace strata::net::tcp
