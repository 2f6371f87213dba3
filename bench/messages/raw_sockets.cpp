// SPDX-License-Identifier: Apache-2.0
// The least that a message over TCP can cost: one connection over loopback, Nagle off, messages of
// one size; who waits tries again and again, or sleeps in recv().
#include <sys/socket.h>

#include <cerrno>

#include "bench/messages/pair.hpp"
#include "bench/messages/raw_pair.hpp"

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

}  // namespace

int main(int argc, char** argv) {
  const bench::exchange e(bench::arguments(argc, argv).rest);
  int fds[2];
  bench::connect_pair(fds);
  way first(fds[0]), second(fds[1]);
  return bench::print_exchange("raw_sockets", e, bench::measure_pair(e, first, second));
}
