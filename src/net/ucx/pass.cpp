// SPDX-License-Identifier: Apache-2.0
#include "net/ucx/pass.hpp"

#include <cstring>

#include "net/pair_key.hpp"

namespace strata::net::ucx {

std::uint64_t pass_of(const launch::job_key& key, std::uint64_t job, node_id source,
                      node_id destination) {
  const pair_key whole = make_pair_key(key, "strata pass, ucx 1", job, source, destination);
  std::uint64_t pass;
  std::memcpy(&pass, whole.data(), sizeof pass);
  return pass;
}

}  // namespace strata::net::ucx
