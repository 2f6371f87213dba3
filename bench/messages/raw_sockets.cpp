// SPDX-License-Identifier: Apache-2.0
// The least that a message over TCP can cost: one connection over loopback, Nagle off, messages of
// one size; who waits tries again and again, or sleeps in recv().
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>

#include "bench/messages/pair.hpp"

namespace {

class way {
 public:
  explicit way(int fd) : fd_(fd) {}
  void begin(const bench::exchange& e) {
    wait_flag_ = e.mode == "latency" ? MSG_DONTWAIT : 0;
    streams_ = e.streams();
    message_.resize(e.bytes);
    into_.resize(std::max<std::size_t>(e.bytes, std::size_t{256} << 10));
  }
  void send() {
    for (std::size_t done = 0; done < message_.size();) {
      const ssize_t n = ::send(fd_, message_.data() + done, message_.size() - done, MSG_NOSIGNAL);
      if (n > 0) done += static_cast<std::size_t>(n);
      if (n < 0 && errno != EINTR) bench::arguments::refuse("send failed");
    }
  }
  void receive() {
    // A stream is read in large pieces.
    const std::size_t most = streams_ ? into_.size() : message_.size();
    while (have_ < message_.size()) {
      const ssize_t n = ::recv(fd_, into_.data(), most, wait_flag_);
      if (n > 0) have_ += static_cast<std::size_t>(n);
      if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        bench::arguments::refuse("recv failed");
    }
    have_ -= message_.size();
  }
  void end() {}

 private:
  const int fd_;
  int wait_flag_ = 0;
  bool streams_ = false;
  std::size_t have_ = 0;
  std::vector<std::byte> message_, into_;
};

void connect_pair(int fds[2]) {
  const int door = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  auto* const where = reinterpret_cast<sockaddr*>(&at);
  fds[0] = ::socket(AF_INET, SOCK_STREAM, 0);
  if (door < 0 || fds[0] < 0 || ::bind(door, where, sizeof at) != 0 || ::listen(door, 1) != 0 ||
      ::getsockname(door, where, &size) != 0 || ::connect(fds[0], where, sizeof at) != 0 ||
      (fds[1] = ::accept(door, nullptr, nullptr)) < 0) {
    bench::arguments::refuse("cannot connect over loopback");
  }
  const int on = 1;
  for (int i = 0; i < 2; ++i) ::setsockopt(fds[i], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

}  // namespace

int main(int argc, char** argv) {
  const bench::exchange e(bench::arguments(argc, argv).rest);
  int fds[2];
  connect_pair(fds);
  way first(fds[0]), second(fds[1]);
  return bench::print_exchange("raw_sockets", e, bench::measure_pair(e, first, second));
}
