// SPDX-License-Identifier: Apache-2.0
// What nodes say to each other in real, if simulated, runs: some of each kind.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "hearing_job.hpp"

namespace strata::test {

inline constexpr unsigned last_kind = 83;  // beyond all that there are

struct said {
  net::node_id at, from;
  payload_bytes payload;
};
using corpus = std::map<kind, std::vector<said>>;

inline corpus record_talk() {
  constexpr unsigned of_one_run_max = 12;
  corpus all;
  for (const auto f : hearing_job::all_flavours) {
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
      std::map<kind, unsigned> of_this_run;
      hearing_job j(
          f, seed, 0,
          [&](net::node_id at, net::node_id from, kind k, std::span<const std::byte> payload) {
            if (++of_this_run[k] <= of_one_run_max)
              all[k].push_back({at, from, {payload.begin(), payload.end()}});
            return false;
          });
      j.go_on(20'000);
      j.check_failure();
    }
  }
  return all;
}

}  // namespace strata::test
