// SPDX-License-Identifier: Apache-2.0
// Two experiments of the EARTH papers on our TCP transport (bench/earth/run calls them):
//   polling recv|select|poll|epoll N   one look at N connections on which nothing has arrived
//   flood BYTES non-blocking|blocking  messages of 1 KiB one way, with socket buffers of BYTES
#include "bench/messages/sockets.hpp"

#include <tuple>

#include "bench/messages/pair.hpp"

namespace {

using namespace strata;
using bench::arguments;

struct counter final : net::receiver {
  std::size_t bytes = 0;
  void on_message(const net::header&, std::span<const std::byte> payload) override {
    bytes += payload.size();
  }
  void on_lost(net::node_id, const std::string&) override {}
};

std::size_t number(const std::string& text, std::size_t first, std::size_t last) {
  char* end = nullptr;
  const unsigned long long n = std::strtoull(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0' || n < first || n > last) {
    arguments::refuse(text + " is not a number from " + std::to_string(first) + " to " +
                      std::to_string(last));
  }
  return n;
}

int polling(const std::string& mechanism, std::size_t connections) {
  using net::tcp::poll_mechanism;
  net::tcp::options o;
  o.mechanism = mechanism == "recv"     ? poll_mechanism::recv
                : mechanism == "select" ? poll_mechanism::select
                : mechanism == "poll"   ? poll_mechanism::poll
                : mechanism == "epoll"  ? poll_mechanism::epoll
                                        : poll_mechanism::automatic;
  if (o.mechanism == poll_mechanism::automatic)
    arguments::refuse("the mechanism is recv, select, poll or epoll, not " + mechanism);
  std::vector<os::descriptor> mine(connections + 1), theirs(connections + 1);
  for (std::size_t n = 1; n <= connections; ++n) std::tie(mine[n], theirs[n]) = bench::connected();
  net::tcp::tcp_transport t(0, std::move(mine), o);
  counter nothing;
  constexpr std::size_t looks = 20'000;
  const double seconds = bench::seconds_for(looks, [&] { (void)t.poll(nothing, 64); });
  return bench::print("earth", mechanism.c_str(), std::to_string(connections), 1, seconds, looks,
                      nothing.bytes == 0);
}

int flood(std::size_t buffer_bytes, const std::string& io) {
  if (io != "blocking" && io != "non-blocking")
    arguments::refuse("sockets are written blocking or non-blocking, not " + io);
  constexpr std::size_t message_bytes = 1024, messages = 50'000;
  net::tcp::options o;
  o.socket_buffer_bytes = buffer_bytes;
  o.io = io == "blocking" ? net::tcp::io_mode::blocking : net::tcp::io_mode::non_blocking;
  auto ends = bench::connected(buffer_bytes);
  double seconds = 0;
  bench::run_pair(
      false,
      [&] {
        const auto t = bench::over_socket(std::move(ends.first), 0, o);
        ends.second = {};
        counter all;
        while (all.bytes == 0) (void)t->poll(all, 64);
        seconds = bench::seconds_of([&] {
          while (all.bytes < messages * message_bytes) {
            if (t->poll(all, 256) == 0) t->wait_for_messages(1'000'000);
          }
        });
      },
      [&] {
        const auto t = bench::over_socket(std::move(ends.second), 1, o);
        ends.first = {};
        const std::vector<std::byte> message(message_bytes);
        net::header h{};
        h.kind = 1;
        h.source = 1;
        // One thread is both the program and the sender.
        for (std::size_t i = 0; i < messages; ++i) {
          while (t->try_send(0, h, message, {}) == net::send_outcome::would_block) {
            if (!t->flush(0)) t->wait_for_room(1'000'000);
          }
        }
        while (!t->flush(0)) t->wait_for_room(1'000'000);
      });
  return bench::print("earth", io.c_str(), std::to_string(buffer_bytes), 2, seconds,
                      static_cast<double>(messages * message_bytes), true);
}

}  // namespace

int main(int argc, char** argv) try {
  const arguments given(argc, argv);
  if (given.rest.size() == 3 && given.rest[0] == "polling")
    return polling(given.rest[1], number(given.rest[2], 1, 400));
  if (given.rest.size() == 3 && given.rest[0] == "flood")
    return flood(number(given.rest[1], 4096, std::size_t{64} << 20), given.rest[2]);
  arguments::refuse("usage: polling MECHANISM CONNECTIONS, or flood BYTES blocking|non-blocking");
} catch (const std::exception& e) {
  bench::arguments::refuse(e.what());
}
