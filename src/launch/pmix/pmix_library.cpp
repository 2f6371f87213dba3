// SPDX-License-Identifier: Apache-2.0
#include "launch/pmix/pmix_library.hpp"

#include <dlfcn.h>

#include <string>

#include "strata/error.hpp"

namespace strata::launch::pmix {

namespace {

constexpr const char* file_name = "libpmix.so.2";

pmix_library load() {
  void* const handle = ::dlopen(file_name, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    throw user_error(
        std::string("cannot load PMIx: ") + ::dlerror() +
        "; install it (Debian: libpmix2) on every host, or set STRATA_LAUNCH=none to let "
        "each process run by itself");
  }
  pmix_library l;
  const auto find = [handle](const char* name) {
    void* const found = ::dlsym(handle, name);
    if (found == nullptr) throw user_error(std::string(file_name) + " has no " + name);
    return found;
  };
#define STRATA_PMIX_FIND(name) l.name = reinterpret_cast<decltype(l.name)>(find(#name));
  STRATA_PMIX_FUNCTIONS(STRATA_PMIX_FIND)
#undef STRATA_PMIX_FIND
  return l;
}

}  // namespace

const pmix_library& pmix_library::get() {
  static const pmix_library loaded = load();
  return loaded;
}

}  // namespace strata::launch::pmix
