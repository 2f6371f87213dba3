// SPDX-License-Identifier: Apache-2.0
#include "net/ucx/ucp_library.hpp"

#include "os/loaded_library.hpp"

namespace strata::net::ucx {

namespace {

ucp_library load() {
  const os::loaded_library library(
      {.title = "UCX",
       .file = "libucp.so.0",
       .remedy = "install it (Debian: libucx0) on every host of the job"});
  ucp_library l;
#define STRATA_UCP_FIND(name) library.find(#name, l.name);  // of libucs too, which it depends on
  STRATA_UCP_FUNCTIONS(STRATA_UCP_FIND)
#undef STRATA_UCP_FIND
  return l;
}

}  // namespace

const ucp_library& ucp_library::get() {
  static const ucp_library loaded = load();
  return loaded;
}

}  // namespace strata::net::ucx
