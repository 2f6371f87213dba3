// SPDX-License-Identifier: Apache-2.0
// A set of numbers as intervals [from, to) that neither overlap nor touch: which packets have
// arrived, which bytes are there, which must be repeated.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>

namespace strata::net::udp {

class interval_set {
 public:
  using intervals = std::map<std::uint64_t, std::uint64_t>;  // from -> to

  void add(std::uint64_t from, std::uint64_t to);
  void remove_below(std::uint64_t limit);
  [[nodiscard]] bool contains(std::uint64_t number) const;

  [[nodiscard]] bool empty() const noexcept { return intervals_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return intervals_.size(); }
  [[nodiscard]] const intervals& all() const noexcept { return intervals_; }

 private:
  intervals intervals_;
};

}  // namespace strata::net::udp
