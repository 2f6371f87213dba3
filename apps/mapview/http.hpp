// SPDX-License-Identifier: Apache-2.0
// What is asked and answered over HTTP, without the sockets.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace mapview {

struct http_request {
  std::string method, path;  // the path without %xx and without parameters
  std::multimap<std::string, std::string> parameters;
  std::string host;        // the header Host, empty if there is none
  std::string fetch_site;  // Sec-Fetch-Site: what a browser says of the page that asks
  // False once the client has gone: then nobody reads an answer.
  std::function<bool()> is_awaited;
};

struct http_answer {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body{};
  std::map<std::string, std::string> headers{};
};

// Must not throw.
using http_handler = std::function<http_answer(const http_request&)>;

// How long a connection may be used, as the answers say.
struct keeping {
  unsigned requests = 0;  // further ones; 0: it will be closed
  unsigned idle_s = 0;
};

struct http_exchange {
  std::string bytes;       // the whole answer
  bool may_go_on = false;  // what follows on the connection is another request
};

// Answers one request, given its head: all up to and with the empty line. A request with a body is
// answered too, but the connection cannot go on: the body is not read.
[[nodiscard]] http_exchange answer_head(std::string_view head, const http_handler& handler,
                                        const std::function<bool()>& is_awaited,
                                        const keeping& keep);

// An answer of one line, for what is not even a request; the connection ends with it.
[[nodiscard]] std::string refusal(int status, const std::string& reason);

}  // namespace mapview
