// SPDX-License-Identifier: Apache-2.0
// What messages cost on Strata's transports, without the threads and protocols of a node above
// them: what is added there shows in the difference to fibers.cpp. First argument: shm, tcp, udp,
// udp-ethernet (in datagrams that an Ethernet carries in one piece) or ucx.
#include <sys/mman.h>
#include <sys/socket.h>

#include <array>
#include <functional>
#include <memory>
#include <utility>

#include "bench/messages/pair.hpp"
#include "bench/messages/sockets.hpp"
#include "net/corked.hpp"
#include "net/shm/shm_transport.hpp"
#include "net/ucx/available.hpp"
#include "net/udp/udp_transport.hpp"
#include "os/clock.hpp"
#if defined(STRATA_HAS_UCX)
#include "net/ucx/ucx_transport.hpp"
#endif

namespace {

using namespace strata;

class way final : net::receiver {
 public:
  way(net::node_id self, net::transport& t) : self_(self), peer_(1 - self), transport_(t) {}
  void begin(const bench::exchange& e) {
    waits_ = e.waits;
    message_.resize(e.bytes);
    into_.resize(e.bytes);
  }
  void send() {
    // Larger messages are cut up, as by the operations of fibers.
    if (message_.size() <= piece_bytes) return send_piece(message_);
    const net::corked together(transport_, peer_, message_);
    for (std::size_t done = 0; done < message_.size();) {
      const std::size_t n = std::min(message_.size() - done, piece_bytes);
      send_piece(std::span(message_).subspan(done, n));
      done += n;
    }
  }
  void receive() {
    end();  // there is no sender thread to do it
    for (bench::wait_limit left(waits_); arrived_ < message_.size();) {
      if (transport_.poll(*this, 256) == 0 && !left.lasts())
        transport_.wait_for_messages(net::wait_forever_ns);
    }
    arrived_ -= message_.size();
    at_ = 0;
  }
  void end() {
    while (!transport_.flush(peer_)) transport_.wait_for_room(net::wait_forever_ns);
  }

 private:
  static constexpr std::size_t piece_bytes = net::payload_bytes_max - 64;

  void send_piece(std::span<const std::byte> piece) {
    net::header h{};
    h.kind = 1;
    h.source = self_;
    h.destination = peer_;
    while (transport_.try_send(peer_, h, {}, piece) == net::send_outcome::would_block) {
      (void)transport_.flush(peer_);
      transport_.wait_for_room(net::wait_forever_ns);
    }
  }
  // Copied to where it belongs, as put does.
  void on_message(const net::header&, std::span<const std::byte> payload) override {
    if (at_ + payload.size() > into_.size()) at_ = 0;
    std::memcpy(into_.data() + at_, payload.data(), payload.size());
    at_ += payload.size();
    arrived_ += payload.size();
  }
  void on_lost(net::node_id, const std::string& why) override { bench::arguments::refuse(why); }

  const net::node_id self_, peer_;
  net::transport& transport_;
  bench::waiting waits_ = bench::waiting::looks;
  std::size_t arrived_ = 0, at_ = 0;
  std::vector<std::byte> message_, into_;
};

std::unique_ptr<net::transport> over_memory(int memory, net::node_id self) {
  net::shm::settings s;
  s.memory = memory;
  s.self = self;
  s.nodes = {0, 1};
  return std::make_unique<net::shm::shm_transport>(s);
}

// `line` leads to the other process, which tells its address there.
std::string exchange_over(int line, const std::string& mine) {
  std::string other(4096, '\0');
  if (::send(line, mine.data(), mine.size(), 0) < 0)
    bench::arguments::refuse("the other process is gone");
  const ssize_t bytes = ::recv(line, other.data(), other.size(), 0);
  if (bytes <= 0) bench::arguments::refuse("the other process is gone");
  other.resize(static_cast<std::size_t>(bytes));
  return other;
}

template <class Transport, class Settings>
std::unique_ptr<net::transport> over_addresses(int line, net::node_id self, Settings s) {
  s.self = self;
  s.nodes = 2;
  auto t = std::make_unique<Transport>(s);
  const launch::address mine = t->address();
  const std::string other = exchange_over(line, std::to_string(mine.port) + ' ' + mine.worker);
  const std::size_t space = other.find(' ');
  std::vector<launch::address> directory(2, mine);
  directory[1U - self].port = static_cast<std::uint16_t>(std::stoul(other.substr(0, space)));
  directory[1U - self].worker = other.substr(space + 1);
  t->connect(directory, os::now_ns() + 30'000'000'000);
  return t;
}

net::udp::settings datagrams_of(const std::string& kind) {
  net::udp::settings s;
  if (kind == "udp-ethernet") s.datagram_bytes = 1472;
  return s;
}

#if defined(STRATA_HAS_UCX)
net::ucx::settings on_this_host() {
  net::ucx::settings s;
  s.devices = "lo";
  return s;
}
#endif

// Made by the process that uses it.
class late {
 public:
  late(net::node_id self, std::function<std::unique_ptr<net::transport>(net::node_id)> make)
      : self_(self), make_(std::move(make)) {}
  void begin(const bench::exchange& e) {
    transport_ = make_(self_);
    way_ = std::make_unique<way>(self_, *transport_);
    way_->begin(e);
  }
  void send() { way_->send(); }
  void receive() { way_->receive(); }
  void end() { way_->end(); }

 private:
  const net::node_id self_;
  std::function<std::unique_ptr<net::transport>(net::node_id)> make_;
  std::unique_ptr<net::transport> transport_;
  std::unique_ptr<way> way_;
};

}  // namespace

int main(int argc, char** argv) try {
  bench::arguments given(argc, argv);
  const std::string kind = given.rest.empty() ? "" : given.rest[0];
  const bool is_udp = kind == "udp" || kind == "udp-ethernet";
  if (kind != "shm" && kind != "tcp" && !is_udp && kind != "ucx")
    bench::arguments::refuse("the first argument is shm, tcp, udp, udp-ethernet or ucx");
  if (kind == "ucx" && !net::ucx::is_built()) bench::arguments::refuse(net::ucx::how_to_get());
  given.rest.erase(given.rest.begin());
  const bench::exchange e(given.rest);
  std::function<std::unique_ptr<net::transport>(net::node_id)> make;
  const os::descriptor memory(::memfd_create("strata-bench", MFD_CLOEXEC));
  std::pair<os::descriptor, os::descriptor> ends;
  std::array<int, 2> line{-1, -1};
  const auto open_line = [&] {
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, line.data()) != 0)
      bench::arguments::refuse("no socket pair");
  };
  if (kind == "shm") {
    make = [&](net::node_id self) { return over_memory(memory.get(), self); };
  } else if (is_udp) {
    open_line();
    make = [&](net::node_id self) {
      return over_addresses<net::udp::udp_transport>(line[self], self, datagrams_of(kind));
    };
#if defined(STRATA_HAS_UCX)
  } else if (kind == "ucx") {
    open_line();
    make = [&](net::node_id self) {
      return over_addresses<net::ucx::ucx_transport>(line[self], self, on_this_host());
    };
#endif
  } else {
    ends = bench::connected();
    make = [&](net::node_id self) {
      return bench::over_socket(std::move(self == 0 ? ends.first : ends.second), self);
    };
  }
  late first(0, make), second(1, make);
  return bench::print_exchange(("strata_" + kind).c_str(), e,
                               bench::measure_pair(e, first, second));
} catch (const std::exception& e) {
  bench::arguments::refuse(e.what());
}
