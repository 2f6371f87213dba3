// SPDX-License-Identifier: Apache-2.0
#include "net/ucx/available.hpp"

namespace strata::net::ucx {

bool is_built() noexcept {
#if defined(STRATA_HAS_UCX)
  return true;
#else
  return false;
#endif
}

const char* how_to_get() noexcept {
  return "this build of Strata has no UCX: install its headers (Debian: libucx-dev) and configure "
         "with STRATA_UCX=ON";
}

}  // namespace strata::net::ucx
