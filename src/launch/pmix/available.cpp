// SPDX-License-Identifier: Apache-2.0
#include "launch/pmix/available.hpp"

#include "strata/error.hpp"
#if defined(STRATA_HAS_PMIX)
#include "launch/pmix/client.hpp"
#endif

namespace strata::launch::pmix {

const char* how_to_get() noexcept {
  return "PMIx has started this process, and this build of Strata cannot join it: install PMIx's "
         "headers (Debian: libpmix-dev) and configure with STRATA_PMIX=ON, or set "
         "STRATA_LAUNCH=none to let each process run by itself";
}

#if defined(STRATA_HAS_PMIX)

bool is_built() noexcept { return true; }

std::string describe() {
  try {
    return client::version();
  } catch (const error& problem) {
    return problem.what();
  }
}

std::string describe_job() {
  const client us;
  return "node " + std::to_string(us.rank()) + " of " + std::to_string(us.size()) + ", " +
         std::to_string(us.peers_of_host().size()) + " of them on this host";
}

#else

bool is_built() noexcept { return false; }

std::string describe() { return "this build has no PMIx (STRATA_PMIX)"; }

std::string describe_job() { throw user_error(how_to_get()); }

#endif

}  // namespace strata::launch::pmix
