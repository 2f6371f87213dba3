// SPDX-License-Identifier: Apache-2.0
#include "program_by_node.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "../common/require.hpp"
#include "strata/message.hpp"
#include "strata/remote_thread.hpp"

namespace {

using namespace strata;
using test::require;

constexpr std::uint32_t speakers_each = 2;  // on each node
constexpr std::uint32_t words_each = 20;    // of a speaker, with each of two tags
constexpr std::size_t word_bytes = 100;

struct spoken {
  std::uint32_t speaker, number;
};

// Large ones, which stay with their sender until they are matched, have the tag that is wanted
// first: nobody waits for those behind them before.
void speak(endpoint_id to, std::uint32_t me) {
  endpoint& mine = this_thread::endpoint();
  for (std::uint32_t i = 0; i < 2 * words_each; ++i) {
    std::vector<std::byte> bytes(i % 8 == 7 ? 100'000 : word_bytes);
    const spoken w{me, i + 1};
    std::memcpy(bytes.data(), &w, sizeof(w));
    mine.send(to, 1 + i % 2, bytes);
  }
}

}  // namespace

void by_node(runtime& rt) {
  rt.run([] {
    endpoint& mine = this_thread::endpoint();
    std::vector<remote_thread> speakers;
    for (unsigned n = 0; n < num_nodes(); ++n) {
      for (std::uint32_t k = 0; k < speakers_each; ++k)
        speakers.emplace_back(on_node{static_cast<node_id_t>(n)},
                              call<speak>(mine.id(), speakers_each * n + k));
    }
    constexpr std::uint32_t of_node = speakers_each * words_each;  // with each tag
    std::map<std::pair<endpoint_id, message_tag>, std::uint32_t> seen;
    const auto check = [&seen](const message_info& m, const std::byte* bytes, unsigned n) {
      spoken w;
      std::memcpy(&w, bytes, sizeof(w));
      require(m.source.node() == n && w.speaker / speakers_each == n, "a message of that node");
      std::uint32_t& before = seen[{m.source, m.tag}];
      require(w.number > before, "the order of a pair");
      before = w.number;
    };
    for (unsigned n = num_nodes(); n-- > 0;) {
      const endpoint_id there = any_endpoint_on(static_cast<node_id_t>(n));
      for (std::uint32_t i = 0; i < of_node; ++i) {
        const message m = mine.receive_message(there, 2);
        require(m.tag == 2, "the tag that is wanted");
        check(m, m.content.data(), n);
      }
      const message_info next = mine.wait_probe(there, 1);
      require(next.source.node() == n && next.tag == 1, "what is seen");
    }
    // Those of all nodes, by receives that wait at the same time.
    std::vector<std::array<std::byte, word_bytes>> words(of_node * num_nodes());
    std::vector<transfer> receives;
    for (std::size_t i = 0; i < words.size(); ++i) {
      const auto n = static_cast<node_id_t>(i % num_nodes());
      receives.push_back(
          mine.start_receive(words[i], any_endpoint_on(n), i % 3 == 0 ? any_tag : 1U));
    }
    for (std::size_t i = 0; i < words.size(); ++i)
      check(receives[i].wait(), words[i].data(), static_cast<unsigned>(i % num_nodes()));
    for (unsigned n = 0; n < num_nodes(); ++n)
      require(!mine.probe(any_endpoint_on(static_cast<node_id_t>(n))), "nothing is left");
    for (remote_thread& t : speakers) t.join();
  });
}
