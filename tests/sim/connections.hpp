// SPDX-License-Identifier: Apache-2.0
// Stream connections under a simulated clock. Each end is a descriptor of its own, so that who uses
// it reads, writes, polls and closes as ever; what it has written comes out of the other end when
// the simulation says so, in pieces of any size, and in order.
#pragma once
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "os/descriptor.hpp"
#include "sim/world.hpp"

namespace strata::test {

class connections {
 public:
  explicit connections(sim::world& w) : world_(w) {}

  using notice = std::function<void()>;
  // One end at once, which is told of what comes; the other one arrives later, with how it wants to
  // be told.
  os::descriptor connect(notice tells_me,
                         std::function<notice(os::descriptor, std::string from)> arrives) {
    auto c = std::make_shared<connection>();
    os::descriptor mine = make_end(c->ends[0]);
    os::descriptor theirs = make_end(c->ends[1]);
    c->ends[0].tell = std::move(tells_me);
    c->name = "stranger:" + std::to_string(++made_);
    all_.push_back(c);
    const std::int64_t at_ns = c->ends[0].arrives_ns = world_.now_ns() + takes_ns();
    world_.at(at_ns, [c, arrives = std::move(arrives),
                      held = std::make_shared<os::descriptor>(std::move(theirs))] {
      c->ends[1].tell = arrives(std::move(*held), c->name);
    });
    return mine;
  }

  // Sends on what has been written, and looks who has closed an end. By everybody who did either.
  void carry() {
    for (const auto& c : std::vector(all_)) {
      for (const int side : {0, 1}) take_from(c, side);
    }
    std::erase_if(all_, [](const auto& c) { return c->ends[0].ended && c->ends[1].ended; });
  }

 private:
  struct end {
    os::descriptor wire;  // what the user of the end does comes out here
    notice tell;
    std::int64_t arrives_ns = 0;  // the last of what it has sent
    bool ended = false;           // it has been closed, and that is known here
  };
  struct connection {
    std::array<end, 2> ends;
    std::string name;
  };

  os::descriptor make_end(end& e) {
    std::array<int, 2> pair{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair.data()), 0);
    e.wire = os::descriptor(pair[0]);
    return os::descriptor(pair[1]);
  }

  std::int64_t takes_ns() {
    return 20'000 + static_cast<std::int64_t>(world_.random.below(100'000));
  }

  void take_from(const std::shared_ptr<connection>& c, int side) {
    end& from = c->ends[static_cast<std::size_t>(side)];
    while (!from.ended) {
      std::array<char, 512> bytes;
      const std::size_t most = 1 + world_.random.below(bytes.size());
      const ssize_t n = ::recv(from.wire.get(), bytes.data(), most, 0);
      if (n < 0 && errno == EAGAIN) return;
      from.ended = n <= 0;
      from.arrives_ns = std::max(from.arrives_ns + 1, world_.now_ns() + takes_ns());
      const std::string piece(bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
      world_.at(from.arrives_ns, [c, side, piece] {
        end& to = c->ends[static_cast<std::size_t>(1 - side)];
        // Whoever was there may have closed its end.
        if (piece.empty())
          to.wire.reset();
        else if (to.wire)
          (void)::send(to.wire.get(), piece.data(), piece.size(), MSG_NOSIGNAL);
        if (to.tell) to.tell();
      });
    }
  }

  sim::world& world_;
  std::vector<std::shared_ptr<connection>> all_;
  unsigned made_ = 0;
};

}  // namespace strata::test
