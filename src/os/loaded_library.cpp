// SPDX-License-Identifier: Apache-2.0
#include "os/loaded_library.hpp"

#include <dlfcn.h>

#include <string>

#include "strata/error.hpp"

namespace strata::os {

loaded_library::loaded_library(const description& wanted)
    : file_(wanted.file), handle_(::dlopen(wanted.file, RTLD_NOW | RTLD_LOCAL)) {
  if (handle_ == nullptr) {
    throw error(std::string("cannot load ") + wanted.title + ": " + ::dlerror() + "; " +
                wanted.remedy);
  }
}

void* loaded_library::address_of(const char* name) const {
  void* const found = ::dlsym(handle_, name);
  if (found == nullptr) throw error(std::string(file_) + " has no " + name);
  return found;
}

}  // namespace strata::os
