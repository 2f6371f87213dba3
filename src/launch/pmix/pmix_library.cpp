// SPDX-License-Identifier: Apache-2.0
#include "launch/pmix/pmix_library.hpp"

#include "os/loaded_library.hpp"
#include "strata/error.hpp"

namespace strata::launch::pmix {

namespace {

pmix_library load() try {
  const os::loaded_library library(
      {.title = "PMIx",
       .file = "libpmix.so.2",
       .remedy = "install it (Debian: libpmix2) on every host, or set STRATA_LAUNCH=none to let "
                 "each process run by itself"});
  pmix_library l;
#define STRATA_PMIX_FIND(name) library.find(#name, l.name);
  STRATA_PMIX_FUNCTIONS(STRATA_PMIX_FIND)
#undef STRATA_PMIX_FIND
  return l;
} catch (const error& e) {
  throw user_error(e.what());  // of the environment that the program was started in
}

}  // namespace

const pmix_library& pmix_library::get() {
  static const pmix_library loaded = load();
  return loaded;
}

}  // namespace strata::launch::pmix
