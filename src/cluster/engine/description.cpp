// SPDX-License-Identifier: Apache-2.0
// What people are told of a node: whom it reaches how, and what has crossed the network.
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cluster/engine/engine.hpp"

namespace strata::cluster {

std::string engine::describe() const {
  const std::vector<node_id> all = members_.all();
  std::string text = "node " + std::to_string(self_) + " of " + std::to_string(all.size());
  std::vector<std::pair<std::string_view, unsigned>> reached;  // by name: several may have one
  for (const auto& t : transports_) {
    const std::string_view name = t->about().name;
    auto found = std::find_if(reached.begin(), reached.end(),
                              [&](const auto& one) { return one.first == name; });
    if (found == reached.end()) found = reached.insert(found, {name, 0U});
    found->second += static_cast<unsigned>(std::count_if(all.begin(), all.end(), [&](node_id n) {
      return n != self_ && find_way(n).hops == 1 && links_->way_to(n) == t.get();
    }));
  }
  for (const auto& [name, count] : reached) {
    if (count != 0) text += ", " + std::to_string(count) + " by " + std::string(name);
  }
  const auto far = std::count_if(all.begin(), all.end(),
                                 [&](node_id n) { return n != self_ && find_way(n).hops != 1; });
  if (far != 0) text += ", " + std::to_string(far) + " by other nodes";
  return text;
}

std::vector<transport_statistics> engine::traffic() const {
  std::vector<transport_statistics> each;
  for (const auto& t : transports_) {
    const net::transport::traffic one = t->counted();
    const std::string_view name = t->about().name;
    // Spare connections have transports of their own, and so has each network of UCX.
    auto found = std::find_if(each.begin(), each.end(),
                              [&](const transport_statistics& of) { return of.name == name; });
    if (found == each.end()) {
      found = each.insert(found, transport_statistics{});
      found->name = name;
    }
    found->messages_out += one.messages_out;
    found->bytes_out += one.bytes_out;
    found->messages_in += one.messages_in;
    found->bytes_in += one.bytes_in;
    found->writes += one.writes;
    found->wakes += one.wakes;
  }
  return each;
}

std::uint64_t engine::passed_on() const noexcept { return links_->forwarded(); }

std::string engine::statistics_text() const {
  const auto number = [](std::uint64_t n) { return std::to_string(n); };
  const stealing::statistics s = protocols_->balance.counted();
  const shelving::statistics shelf = protocols_->shelf.counted();
  const auto tokens = workers_.count_injected_tokens();
  const auto mail = workers_.in_mailboxes->now();
  return "strata: " + describe() + "\n  tokens from other nodes " + number(s.taken) +
         ", to other nodes " + number(s.given) + "; asked " + number(s.asked) + ", ahead " +
         number(s.ahead) + ", refused " + number(s.refused) + ", lifelines " + number(s.lifelines) +
         "\n  shelf: offered " + number(shelf.offered) + ", taken back " +
         number(shelf.taken_back) + ", passed on " + number(shelf.passed_on) +
         "; taken from others' " + number(shelf.taken) + "\n  held: tokens that came and wait " +
         number(tokens.now) + ", at most " + number(tokens.most) + "; in mailboxes " +
         number(mail.items) + " items of " + number(mail.bytes) + " bytes, at most " +
         number(mail.most_bytes) + " bytes\n";
}

}  // namespace strata::cluster
