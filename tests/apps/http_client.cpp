// SPDX-License-Identifier: Apache-2.0
#include "http_client.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <stdexcept>

namespace apps_test {

std::string reply::header(const std::string& name) const {
  const std::size_t at = head.find("\r\n" + name + ": ");
  if (at == std::string::npos) return {};
  const std::size_t begin = at + name.size() + 4;
  return head.substr(begin, head.find("\r\n", begin) - begin);
}

connection::connection(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) {
    ::close(fd_);
    throw std::runtime_error("nobody listens on port " + std::to_string(port));
  }
}

connection::~connection() { ::close(fd_); }

void connection::send(const std::string& bytes) {
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t n = ::send(fd_, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
    if (n <= 0) return;  // closed already: what it has answered is to be looked at
    done += static_cast<std::size_t>(n);
  }
}

bool connection::more() {
  std::array<char, 65'536> bytes;
  const ssize_t n = ::recv(fd_, bytes.data(), bytes.size(), 0);
  if (n < 0) was_reset_ = true;
  if (n <= 0) return false;
  received_.append(bytes.data(), static_cast<std::size_t>(n));
  return true;
}

reply connection::receive(bool bodiless) {
  reply r;
  std::size_t end = 0;
  while ((end = received_.find("\r\n\r\n")) == std::string::npos) {
    if (!more()) return r;
  }
  r.head = received_.substr(0, end + 2);
  received_.erase(0, end + 4);
  r.status = std::atoi(r.head.substr(r.head.find(' ') + 1, 3).c_str());
  const std::size_t size =
      bodiless ? 0 : std::strtoul(r.header("Content-Length").c_str(), nullptr, 10);
  while (received_.size() < size) {
    if (!more()) throw std::runtime_error("an answer that is cut short");
  }
  r.body = received_.substr(0, size);
  received_.erase(0, size);
  return r;
}

std::string connection::rest() {
  while (more()) {
  }
  return received_;
}

reply get(std::uint16_t port, const std::string& target, const std::string& headers,
          const std::string& method) {
  connection c(port);
  const bool host_given = headers.find("Host:") != std::string::npos;
  c.send(method + " " + target + " HTTP/1.1\r\n" + (host_given ? "" : "Host: 127.0.0.1\r\n") +
         headers + "\r\n");
  return c.receive(method == "HEAD");
}

}  // namespace apps_test
