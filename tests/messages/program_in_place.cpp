// SPDX-License-Identifier: Apache-2.0
#include "program_in_place.hpp"

#include <array>
#include <cstddef>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "../common/require.hpp"
#include "program_support.hpp"
#include "strata/message.hpp"
#include "strata/remote_thread.hpp"

namespace {

using namespace strata;
using test::last_node;
using test::pattern_of;
using test::require;

// On both sides of each path's limits.
constexpr std::array<std::size_t, 9> sizes = {0,      1,      64,      4096,     16'385,
                                              65'536, 65'537, 300'000, 3'000'000};
constexpr unsigned rounds = 20;

void send_all_sizes(endpoint_id to) {
  endpoint& mine = this_thread::endpoint();
  for (unsigned round = 0; round < rounds; ++round) {
    for (const std::size_t bytes : sizes) mine.send(to, round, pattern_of(bytes, round));
    mine.start_synchronous_send(to, round, std::span<const std::byte>()).wait();
  }
  (void)mine.receive_message(to);
  // It waits for these: they are looked at by whoever brings them.
  for (int i = 0; i < 1000; ++i) mine.send_value(to, 5, i);
}

bool is(std::span<const std::byte> bytes, const std::vector<std::byte>& wanted) {
  return bytes.size() == wanted.size() &&
         (bytes.empty() || std::memcmp(bytes.data(), wanted.data(), bytes.size()) == 0);
}

}  // namespace

void in_place(runtime& rt) {
  rt.run([] {
    endpoint mine;
    remote_thread other(on_node{last_node()}, call<send_all_sizes>(mine.id()));
    endpoint_id from;
    for (unsigned round = 0; round < rounds; ++round) {
      for (const std::size_t bytes : sizes) {
        const std::vector<std::byte> wanted = pattern_of(bytes, round);
        unsigned looks = 0;
        const message_info m = mine.receive_in_place(
            [&](const message_info& its, std::span<const std::byte> what) {
              ++looks;
              from = its.source;
              require(its.bytes == bytes && its.tag == round && is(what, wanted),
                      "a message that is looked at");
            },
            any_endpoint, round);
        require(looks == 1 && m.bytes == bytes, "one look");
      }
      mine.receive_in_place([](const auto&, auto what) { require(what.empty(), "nothing"); }, from);
    }
    mine.send_value(from, 1, 0);
    for (int i = 0; i < 1000; ++i) {
      try {
        mine.receive_in_place([i](const auto&, auto bytes) {
          require(is(bytes, {bytes_of(i).begin(), bytes_of(i).end()}), "messages in their order");
          if (i % 10 == 3) throw std::runtime_error("odd");
        });
        require(i % 10 != 3, "what a look throws");
      } catch (const std::runtime_error& e) {
        require(std::string_view(e.what()) == "odd", e.what());
      }
    }
    other.join();
  });
}
