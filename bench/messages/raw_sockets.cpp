// SPDX-License-Identifier: Apache-2.0
// The least that a message over TCP can cost: one connection over loopback, Nagle off, messages of
// one size; who waits tries again and again, or sleeps in send() or recv().
#include <sys/socket.h>

#include <cerrno>

#include "bench/messages/pair.hpp"
#include "bench/messages/raw_pair.hpp"

namespace {

class way {
 public:
  explicit way(int fd) : fd_(fd) {}
  void begin(const bench::exchange& e) {
    waits_ = e.waits;
    streams_ = e.streams();
    message_.resize(e.bytes);
    into_.resize(std::max<std::size_t>(e.bytes, std::size_t{256} << 10));
  }
  void send() {
    for (std::size_t done = 0; done < message_.size();) {
      done += moved([&](int flag) {
        return ::send(fd_, message_.data() + done, message_.size() - done, MSG_NOSIGNAL | flag);
      });
    }
  }
  void receive() {
    // A stream is read in large pieces.
    const std::size_t most = streams_ ? into_.size() : message_.size();
    while (have_ < message_.size())
      have_ += moved([&](int flag) { return ::recv(fd_, into_.data(), most, flag); });
    have_ -= message_.size();
  }
  void end() {}

 private:
  template <class Call>
  std::size_t moved(Call&& call) const {
    for (bench::wait_limit left(waits_);;) {
      const ssize_t n = call(left.lasts() ? MSG_DONTWAIT : 0);
      if (n > 0) return static_cast<std::size_t>(n);
      if (n == 0 || (errno != EAGAIN && errno != EINTR))
        bench::arguments::refuse("the connection failed");
    }
  }

  const int fd_;
  bench::waiting waits_ = bench::waiting::looks;
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
