// SPDX-License-Identifier: Apache-2.0
// The least that a message over UDP can cost: two connected sockets over loopback, each message cut
// into datagrams as large as they may be. Nothing is repeated; so that nothing need be, no more is
// under way than the receiver's buffer holds: an empty datagram tells that there is room for half a
// window more. What is lost nevertheless is counted, by the kernel, and fails. Who waits tries
// again and again, or sleeps in send() or recv().
//
//   raw_datagrams MODE [BYTES [COUNT [WINDOW]]]: see pair.hpp; the window, in datagrams, is one
//   that fits otherwise
#include <linux/sock_diag.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <array>
#include <cerrno>

#include "bench/messages/pair.hpp"
#include "bench/messages/raw_pair.hpp"

namespace {

constexpr std::size_t datagram_bytes_max = 65'507;
constexpr int buffer_bytes = 4 << 20;
constexpr int silence_s = 10;
constexpr const char* silent = "nothing has come for 10 s";

// As many as the buffer holds in any case: the kernel charges up to twice the bytes and a head for
// each, and up to a quarter of the buffer for some that are gone.
std::size_t window_that_fits(int fd, std::size_t datagram_bytes) {
  int room = 0;
  socklen_t size = sizeof room;
  if (::getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, &size) != 0)
    bench::arguments::refuse("cannot tell the size of the receive buffer");
  return std::max<std::size_t>(static_cast<std::size_t>(room) / 2 / (2 * datagram_bytes + 1280), 1);
}

// Of what was sent to this socket.
std::uint32_t lost_at(int fd) {
  std::array<std::uint32_t, SK_MEMINFO_VARS> told{};
  socklen_t size = sizeof told;
  if (::getsockopt(fd, SOL_SOCKET, SO_MEMINFO, told.data(), &size) != 0)
    bench::arguments::refuse("the kernel does not tell how many datagrams were lost");
  return told[SK_MEMINFO_DROPS];
}

class way {
 public:
  way(int fd, int other, std::size_t window) : fd_(fd), other_(other), window_(window) {}
  void begin(const bench::exchange& e) {
    waits_ = e.waits;
    message_.resize(e.bytes);
    into_.resize(std::min(e.bytes, datagram_bytes_max));
    if (window_ == 0) window_ = window_that_fits(fd_, into_.size());
    half_ = std::max<std::size_t>(window_ / 2, 1);
    const timeval limit{silence_s, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  }
  void send() {
    for (std::size_t done = 0; done < message_.size();) {
      // The other side sends no message before it has this one.
      while (room_used_ == window_) arrive();
      const std::size_t n = std::min(message_.size() - done, datagram_bytes_max);
      send_datagram(message_.data() + done, n);
      ++room_used_;
      done += n;
    }
  }
  void receive() {
    for (std::size_t have = 0; have < message_.size();) {
      const std::size_t n = arrive();
      have += n;
      if (n == 0 || ++taken_ < half_) continue;
      taken_ = 0;
      send_datagram(nullptr, 0);
    }
  }
  void end() {
    if (lost_at(fd_) + lost_at(other_) != 0) fail("at the end");
  }

 private:
  // What has come; 0 bytes: there is room.
  std::size_t arrive() {
    double silent_since = 0;
    bench::wait_limit left(waits_);
    for (unsigned looks = 1;; ++looks) {
      const bool looks_on = left.lasts();
      const ssize_t n = ::recv(fd_, into_.data(), into_.size(), looks_on ? MSG_DONTWAIT : 0);
      if (n == 0) room_used_ -= half_;
      if (n >= 0) return static_cast<std::size_t>(n);
      if (errno != EAGAIN && errno != EINTR) bench::arguments::refuse("recv failed");
      if (!looks_on && errno == EAGAIN) fail(silent);
      if (looks % 65'536 != 0) continue;
      if (silent_since == 0) silent_since = bench::seconds_now();
      if (bench::seconds_now() - silent_since > silence_s) fail(silent);
    }
  }
  void send_datagram(const std::byte* bytes, std::size_t size) const {
    for (bench::wait_limit left(waits_);;) {
      if (::send(fd_, bytes, size, left.lasts() ? MSG_DONTWAIT : 0) == static_cast<ssize_t>(size)) {
        return;
      }
      if (errno != EAGAIN && errno != EINTR) bench::arguments::refuse("send failed");
    }
  }
  [[noreturn]] void fail(const std::string& what) const {
    bench::arguments::refuse(what + ": " + std::to_string(lost_at(fd_)) +
                             " datagrams to this process were lost, " +
                             std::to_string(lost_at(other_)) + " to the other one; a window of " +
                             std::to_string(window_) + " datagrams is too large");
  }

  const int fd_, other_;
  std::size_t window_, half_ = 1;
  bench::waiting waits_ = bench::waiting::looks;
  std::size_t room_used_ =
      0;                   // by datagrams of which the other side has not told that it took them
  std::size_t taken_ = 0;  // of which it has not been told
  std::vector<std::byte> message_, into_;
};

}  // namespace

int main(int argc, char** argv) {
  bench::arguments given(argc, argv);
  const bench::exchange e(given.rest);
  std::size_t window = 0;
  if (given.rest.size() > 3) {
    given.rest.erase(given.rest.begin(), given.rest.begin() + 3);
    window = given.number(0, 1, 1'000'000'000);
  }
  int fds[2];
  bench::connect_datagram_pair(fds, buffer_bytes);
  way first(fds[0], fds[1], window), second(fds[1], fds[0], window);
  return bench::print_exchange("raw_datagrams", e, bench::measure_pair(e, first, second));
}
