// SPDX-License-Identifier: Apache-2.0
// Words between a gateway where too much waits and the sources of it: an odd number says "wait",
// the even one after it "go on".
//
// They are counted modulo 2^16, because they may overtake each other: who fills a queue and who
// empties it speak from different threads. The newest counts.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "net/wire.hpp"

namespace strata::cluster {

using net::node_id;

// Source and destination of what goes by a gateway.
using flow = std::pair<node_id, node_id>;

// The gateway's side, of what waits in one queue.
class words_told {
 public:
  // What its source is to hear now; none: it waits already.
  [[nodiscard]] std::optional<std::uint16_t> hold(const flow& f) {
    std::uint16_t& last = last_[f];
    if (is_wait(last)) return std::nullopt;
    return ++last;
  }
  // What those are to hear that wait: they need not any more. Where it throws, they wait still.
  using words = std::vector<std::pair<flow, std::uint16_t>>;
  [[nodiscard]] words release() {
    const auto waits = [](const auto& one) { return is_wait(one.second); };
    words all;
    all.reserve(static_cast<std::size_t>(std::count_if(last_.begin(), last_.end(), waits)));
    for (auto& [f, last] : last_) {
      if (is_wait(last)) all.emplace_back(f, ++last);
    }
    return all;
  }
  void clear() noexcept { last_.clear(); }

  static bool is_wait(std::uint16_t word) noexcept { return word % 2 != 0; }

 private:
  std::map<flow, std::uint16_t> last_;
};

// The source's, of its way to one destination.
class words_heard {
 public:
  // False: a newer one has come from there.
  bool hear(node_id gateway, std::uint16_t word) {
    std::uint16_t& last = last_[gateway];
    if (static_cast<std::int16_t>(static_cast<std::uint16_t>(word - last)) <= 0) return false;
    last = word;
    return true;
  }
  // Its words do not count any more. False: there were none.
  bool forget(node_id gateway) { return last_.erase(gateway) != 0; }
  void clear() noexcept { last_.clear(); }
  // Some gateway on the way wants the source to wait.
  [[nodiscard]] bool say_wait() const {
    return std::any_of(last_.begin(), last_.end(),
                       [](const auto& w) { return words_told::is_wait(w.second); });
  }

 private:
  std::map<node_id, std::uint16_t> last_;
};

}  // namespace strata::cluster
