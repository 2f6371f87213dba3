// SPDX-License-Identifier: Apache-2.0
// A server on this host's loopback: each connection has a strata::thread, which waits for its
// client without a worker.
#pragma once
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <set>
#include <strata/mutex.hpp>
#include <strata/semaphore.hpp>
#include <string>

#include "apps/mapview/http.hpp"

namespace mapview {

struct http_limits {
  unsigned connections = 64;                 // one more is answered with 503
  std::size_t head_bytes = 8192;             // of a request
  std::size_t line_bytes = 2048;             // of its first line, and of each header
  unsigned requests = 1000;                  // of one connection
  std::chrono::milliseconds idle{15'000};    // between two requests
  std::chrono::milliseconds head{5000};      // from the first byte of a head to its last
  std::chrono::milliseconds answer{30'000};  // for sending one
  // Of a connection's thread: libraries that count on an OS thread's stack make pictures there, and
  // compress answers.
  std::size_t stack_bytes = std::size_t{4} << 20;
};

class http_server {
 public:
  // Listens on 127.0.0.1; port 0: any. Throws strata::user_error when the port is taken.
  http_server(std::uint16_t port, http_handler handler, const http_limits& limits = {});
  ~http_server();
  http_server(const http_server&) = delete;
  http_server& operator=(const http_server&) = delete;

  [[nodiscard]] std::uint16_t port() const { return port_; }
  // Until stop(); returns when the answers under way have been sent. Within the runtime, once.
  void serve();
  // Any thread.
  void stop() noexcept;
  [[nodiscard]] bool is_stopping() const { return stopping_.load(std::memory_order_relaxed); }

 private:
  void turn_away(int fd);
  void forget(int fd);
  void converse(int fd);
  void answer_all(int fd);
  bool send_all(int fd, std::string_view bytes);
  // Reads until `bytes` holds a head; its size, or 0 when the connection is to be closed.
  std::size_t read_head(int fd, std::string& bytes);
  void part(int fd);

  const http_handler handler_;
  const http_limits limits_;
  int listening_ = -1;
  std::uint16_t port_ = 0;
  std::atomic<bool> stopping_{false};
  strata::counting_semaphore<> free_;  // connections that may still come
  strata::mutex mutex_;
  std::set<int> open_;  // guarded by mutex_; shut down when the server stops
};

}  // namespace mapview
