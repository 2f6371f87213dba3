// SPDX-License-Identifier: Apache-2.0
#include "net/ucx/ucp_library.hpp"

#include <dlfcn.h>

#include <string>

#include "strata/error.hpp"

namespace strata::net::ucx {

namespace {

constexpr const char* file_name = "libucp.so.0";

ucp_library load() {
  void* const handle = ::dlopen(file_name, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    throw error(std::string("cannot load UCX: ") + ::dlerror() +
                "; install it (Debian: libucx0) on every host of the job");
  }
  ucp_library l;
  const auto find = [handle](const char* name) {
    void* const found = ::dlsym(handle, name);  // of libucs too, which libucp depends on
    if (found == nullptr) throw error(std::string(file_name) + " has no " + name);
    return found;
  };
#define STRATA_UCP_FIND(name) l.name = reinterpret_cast<decltype(l.name)>(find(#name));
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
