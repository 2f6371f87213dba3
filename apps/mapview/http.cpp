// SPDX-License-Identifier: Apache-2.0
// cpp-httplib reads heads and writes answers; it never sees a socket. Its own server would keep an
// OS thread for each connection, restart its patience with every byte of a slow client, and take a
// port that somebody else listens on. (http_server.cpp does better with threads of ours.)
#include "apps/mapview/http.hpp"

#include <httplib.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace mapview {
namespace {

// From a head in memory to an answer in memory.
class memory_stream final : public httplib::Stream {
 public:
  explicit memory_stream(std::string_view from) : from_(from) {}
  [[nodiscard]] bool is_readable() const override { return !from_.empty(); }
  [[nodiscard]] bool is_writable() const override { return true; }
  ssize_t read(char* to, std::size_t bytes) override {
    bytes = std::min(bytes, from_.size());
    std::memcpy(to, from_.data(), bytes);
    from_.remove_prefix(bytes);
    return static_cast<ssize_t>(bytes);
  }
  ssize_t write(const char* bytes, std::size_t size) override {
    written.append(bytes, size);
    return static_cast<ssize_t>(size);
  }
  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}
  [[nodiscard]] socket_t socket() const override { return 0; }

  std::string written;

 private:
  std::string_view from_;
};

class codec : public httplib::Server {
 public:
  using httplib::Server::process_request;
};

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

// httplib would also take %u and four digits, and make nothing of some of them.
std::string without_percents(std::string_view text) {
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const int high = text[i] == '%' && i + 2 < text.size() ? digit_of(text[i + 1]) : -1;
    const int low = high >= 0 ? digit_of(text[i + 2]) : -1;
    if (low >= 0) i += 2;
    bytes += low >= 0 ? static_cast<char>(high * 16 + low) : text[i];
  }
  return bytes;
}

// httplib would leave out a parameter that comes twice in the same words.
std::multimap<std::string, std::string> parameters_of(std::string_view query) {
  std::multimap<std::string, std::string> all;
  while (!query.empty()) {
    const std::string_view one = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(one.size() + 1, query.size()));
    if (one.empty()) continue;
    const std::size_t end = std::min(one.find('='), one.size());
    all.emplace(without_percents(one.substr(0, end)),
                without_percents(one.substr(std::min(end + 1, one.size()))));
  }
  return all;
}

http_request understood(const httplib::Request& r, const std::function<bool()>& is_awaited) {
  http_request q;
  q.method = r.method;
  const std::string_view target = r.target;
  const std::size_t end = std::min(target.find('?'), target.size());
  q.path = without_percents(target.substr(0, end));
  q.parameters = parameters_of(target.substr(std::min(end + 1, target.size())));
  // Of two, none counts: whoever stands between might believe the other one.
  if (r.get_header_value_count("Host") == 1) q.host = r.get_header_value("Host");
  q.fetch_site = r.get_header_value("Sec-Fetch-Site");
  q.is_awaited = is_awaited;
  return q;
}

bool same_word(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return lower(x) == lower(y); });
}

// Connection: a list, whose words may be written in small or in capital letters.
bool asks_to_close(const httplib::Request& r) {
  const auto [begin, end] = r.headers.equal_range("Connection");
  for (auto one = begin; one != end; ++one) {
    std::string_view list = one->second;
    while (!list.empty()) {
      std::string_view word = list.substr(0, list.find(','));
      list.remove_prefix(std::min(word.size() + 1, list.size()));
      word.remove_prefix(std::min(word.find_first_not_of(" \t"), word.size()));
      word = word.substr(0, word.find_last_not_of(" \t") + 1);
      if (same_word(word, "close")) return true;
    }
  }
  return false;
}

// The standard lets us answer a request for a part with the whole, and asks us to pass over a
// Range that makes no sense. httplib would look at it before anybody else, and refuse it.
std::string without_ranges(std::string_view head) {
  constexpr std::string_view name = "Range:";
  std::string rest;
  while (!head.empty()) {
    const std::string_view line = head.substr(0, std::min(head.find('\n'), head.size() - 1) + 1);
    head.remove_prefix(line.size());
    const bool is_first = rest.empty();
    if (is_first || !same_word(line.substr(0, name.size()), name)) rest += line;
  }
  return rest;
}

}  // namespace

http_exchange answer_head(std::string_view head, const http_handler& handler,
                          const std::function<bool()>& is_awaited, const keeping& keep) {
  codec c;
  c.set_keep_alive_max_count(keep.requests);
  c.set_keep_alive_timeout(keep.idle_s);
  // Called before httplib compares the path with regular expressions, of which it has none then.
  c.set_pre_routing_handler([&](const httplib::Request& r, httplib::Response& to) {
    http_answer a = handler(understood(r, is_awaited));
    to.status = a.status;
    to.set_content(std::move(a.body), a.type);
    for (const auto& [name, value] : a.headers) to.set_header(name, value);
    return httplib::Server::HandlerResponse::Handled;
  });
  const std::string wanted = without_ranges(head);
  memory_stream stream(wanted);
  bool is_request = false, ends = true, closed = false;
  const auto prepare = [&](httplib::Request& r) {
    const bool has_body = r.has_header("Content-Length") || r.has_header("Transfer-Encoding") ||
                          (r.method != "GET" && r.method != "HEAD");
    is_request = true;
    ends = keep.requests == 0 || has_body || r.version != "HTTP/1.1" || asks_to_close(r);
    r.headers.erase("Expect");
    // httplib's answer says what it finds here.
    r.headers.erase("Connection");
    if (ends) r.set_header("Connection", "close");
  };
  const bool kept = c.process_request(stream, false, closed, prepare);
  // What httplib says of anything else would promise a connection that goes on.
  if (!is_request) return {refusal(400, "not a request of HTTP/1.1"), false};
  return {std::move(stream.written), kept && !ends};
}

std::string refusal(int status, const std::string& reason) {
  return "HTTP/1.1 " + std::to_string(status) + " " + reason +
         "\r\nConnection: close\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: " +
         std::to_string(reason.size() + 1) + "\r\n\r\n" + reason + "\n";
}

}  // namespace mapview
