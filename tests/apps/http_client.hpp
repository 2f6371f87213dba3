// SPDX-License-Identifier: Apache-2.0
// As much of an HTTP client as tests need, and as rude as they like.
#pragma once
#include <cstdint>
#include <string>

namespace apps_test {

struct reply {
  int status = 0;  // 0: closed without an answer
  std::string head, body;
  // A header's value; empty if there is none.
  std::string header(const std::string& name) const;
};

class connection {
 public:
  explicit connection(std::uint16_t port);  // on 127.0.0.1; throws if nobody listens
  ~connection();
  connection(const connection&) = delete;
  connection& operator=(const connection&) = delete;

  void send(const std::string& bytes);
  // The next answer. `bodiless`: it is one to HEAD.
  reply receive(bool bodiless = false);
  // Waits until the other side has closed; what it still sent.
  std::string rest();
  // Whether it did so with an error, which may take back what was not read yet. Behind rest().
  [[nodiscard]] bool was_reset() const { return was_reset_; }

 private:
  bool more();
  int fd_;
  bool was_reset_ = false;
  std::string received_;
};

// "GET <target>" on a connection of its own; `headers`: further lines, each with its "\r\n".
reply get(std::uint16_t port, const std::string& target, const std::string& headers = {},
          const std::string& method = "GET");

}  // namespace apps_test
