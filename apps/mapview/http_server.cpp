// SPDX-License-Identifier: Apache-2.0
#include "apps/mapview/http_server.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <new>
#include <strata/blocking.hpp>
#include <strata/error.hpp>
#include <strata/thread.hpp>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

namespace mapview {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

// True while the peer may still read: it has not closed its end. One that has only closed its way
// to us cannot be told from it, and is taken for gone; browsers give up by closing.
bool is_there(int fd) {
  char byte = 0;
  const ssize_t n = ::recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return n > 0 || (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR));
}

// To a client that gets no thread, who is not waited for. It is told that this is all before it is
// closed, and what it has sent is taken: else the system would take the answer back, and the client
// would hear that it was cut off.
void refuse_at_once(int fd, const std::string& reason) {
  const std::string text = refusal(503, reason);
  (void)::send(fd, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  ::shutdown(fd, SHUT_WR);
  std::array<char, 4096> unread;
  for (int i = 0; i < 16; ++i) {  // more than a head takes
    if (::recv(fd, unread.data(), unread.size(), MSG_DONTWAIT) <= 0) break;
  }
}

constexpr std::string_view empty_line = "\r\n";

// Why these bytes cannot be the beginning of a head; empty if they can.
std::string objection(std::string_view bytes, const http_limits& limits) {
  if (bytes.substr(0, empty_line.size()) == empty_line)
    return refusal(400, "not a request of HTTP/1.1");
  bool first = true;
  for (std::size_t begin = 0; begin < bytes.size(); first = false) {
    std::size_t end = bytes.find('\n', begin);
    if (end == std::string_view::npos) end = bytes.size();
    if (end - begin > limits.line_bytes)
      return refusal(first ? 414 : 431,
                     (first ? "an address has at most " : "a header has at most ") +
                         std::to_string(limits.line_bytes) + " bytes");
    begin = end + 1;
  }
  for (const char c : bytes) {
    if (static_cast<unsigned char>(c) < ' ' && c != '\r' && c != '\n' && c != '\t')
      return refusal(400, "not a request of HTTP/1.1");
  }
  if (bytes.size() > limits.head_bytes)
    return refusal(
        431, "the head of a request has at most " + std::to_string(limits.head_bytes) + " bytes");
  return {};
}

}  // namespace

http_server::http_server(std::uint16_t port, http_handler handler, const http_limits& limits)
    : handler_(std::move(handler)), limits_(limits), free_(limits.connections) {
  const auto fail = [&](const std::string& what) {
    const int error = errno;
    if (listening_ >= 0) ::close(listening_);
    throw strata::user_error("127.0.0.1:" + std::to_string(port) + ": " + what + ": " +
                             std::strerror(error) + "; choose another --port, or 0 for any");
  };
  // httplib makes its tables with the first request. Made here they are older than all connections,
  // which ThreadSanitizer cannot see of a library that was built without it.
  (void)answer_head(
      "GET / HTTP/1.1\r\n\r\n", [](const http_request&) { return http_answer{}; },
      [] { return true; }, {});
  listening_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (listening_ < 0) fail("no socket");
  // A server that has just ended leaves connections behind that would keep the port for a minute.
  const int yes = 1;
  ::setsockopt(listening_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(port);
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  if (::bind(listening_, reinterpret_cast<sockaddr*>(&at), size) != 0 ||
      ::listen(listening_, static_cast<int>(limits.connections)) != 0 ||
      ::getsockname(listening_, reinterpret_cast<sockaddr*>(&at), &size) != 0)
    fail("cannot listen");
  port_ = ntohs(at.sin_port);
}

http_server::~http_server() { ::close(listening_); }

void http_server::stop() noexcept {
  stopping_.store(true, std::memory_order_relaxed);
  ::shutdown(listening_, SHUT_RDWR);  // accept() in serve() returns
}

void http_server::serve() {
  while (!is_stopping()) {
    const int fd = strata::io::accept(listening_, nullptr, nullptr);
    if (fd < 0) {
      // Out of descriptors, memory or threads, for now, so the pause needs no thread for timers. A
      // client that has gone already needs no pause, but is not harmed by one either.
      if (!is_stopping()) strata::blocking([] { std::this_thread::sleep_for(20ms); });
      continue;
    }
    const int yes = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    ::fcntl(fd, F_SETFD, FD_CLOEXEC);
    if (!free_.try_acquire()) {
      refuse_at_once(fd, "too many connections; try again");
      ::close(fd);
      continue;
    }
    try {
      {
        const std::lock_guard lock(mutex_);
        open_.insert(fd);
      }
      strata::thread({.name = "connection", .stack_bytes = limits_.stack_bytes}, [this, fd] {
        converse(fd);
        part(fd);
        free_.release();  // the last access: serve() may return now
      }).detach();
    } catch (const std::system_error&) {  // no room for one more thread
      turn_away(fd);
    } catch (const std::bad_alloc&) {
      turn_away(fd);
    }
  }
  {
    const std::lock_guard lock(mutex_);
    for (const int fd : open_) ::shutdown(fd, SHUT_RD);  // those who wait for a request
  }
  for (unsigned i = 0; i < limits_.connections; ++i) free_.acquire();
}

// A client that got no thread, though it had its place.
void http_server::turn_away(int fd) {
  refuse_at_once(fd, "no room for one more connection; try again");
  forget(fd);
  free_.release();
}

// Not closed before it is off the list: another connection may have the number at once.
void http_server::forget(int fd) {
  {
    const std::lock_guard lock(mutex_);
    open_.erase(fd);
  }
  ::close(fd);
}

void http_server::converse(int fd) {
  try {
    answer_all(fd);
  } catch (const std::bad_alloc&) {  // never in the middle of an answer
    constexpr std::string_view text =
        "HTTP/1.1 503 out of memory\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    send_all(fd, text);
  }
}

void http_server::answer_all(int fd) {
  std::string bytes;
  for (unsigned left = limits_.requests; left-- != 0 && !is_stopping();) {
    const std::size_t size = read_head(fd, bytes);
    if (size == 0) return;
    const keeping keep{left, static_cast<unsigned>(limits_.idle / 1s)};
    const http_exchange e = answer_head(
        std::string_view(bytes).substr(0, size), handler_,
        [this, fd] { return !is_stopping() && is_there(fd); }, keep);
    if (!send_all(fd, e.bytes) || !e.may_go_on) return;
    bytes.erase(0, size);
  }
}

std::size_t http_server::read_head(int fd, std::string& bytes) {
  auto deadline = steady_clock::now() + (bytes.empty() ? limits_.idle : limits_.head);
  // One is passed over: some clients end a body with a line more than they have announced.
  bool may_begin_empty = true;
  for (;;) {
    if (may_begin_empty && bytes.compare(0, empty_line.size(), empty_line) == 0) {
      bytes.erase(0, empty_line.size());
      may_begin_empty = false;
    }
    const std::size_t end = bytes.find("\r\n\r\n");
    const std::size_t size = end == std::string::npos ? 0 : end + 4;
    const std::string no =
        objection(size == 0 ? bytes : std::string_view(bytes).substr(0, size), limits_);
    if (!no.empty()) {
      send_all(fd, no);
      return 0;
    }
    if (size != 0) return size;
    std::array<char, 2048> more;
    const auto left = deadline - steady_clock::now();
    const ssize_t n = left <= 0ns ? -1 : strata::io::recv(fd, more.data(), more.size(), 0, left);
    if (n <= 0) {
      if (n < 0 && !bytes.empty() && steady_clock::now() >= deadline)
        send_all(fd, refusal(408, "the request did not come in time"));
      return 0;
    }
    if (bytes.empty()) deadline = steady_clock::now() + limits_.head;
    bytes.append(more.data(), static_cast<std::size_t>(n));
  }
}

bool http_server::send_all(int fd, std::string_view bytes) {
  const auto deadline = steady_clock::now() + limits_.answer;
  while (!bytes.empty()) {
    const auto left = deadline - steady_clock::now();
    if (left <= 0ns) return false;
    const ssize_t n = strata::io::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL, left);
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

// Closing while the client still sends would take back what it has not read yet: we say that we
// are done, and listen a moment.
void http_server::part(int fd) {
  ::shutdown(fd, SHUT_WR);
  std::array<char, 4096> unread;
  const auto deadline = steady_clock::now() + 500ms;
  for (auto left = deadline - steady_clock::now(); left > 0ns && !is_stopping();
       left = deadline - steady_clock::now()) {
    if (strata::io::recv(fd, unread.data(), unread.size(), 0, left) <= 0) break;
  }
  forget(fd);
}

}  // namespace mapview
