// SPDX-License-Identifier: Apache-2.0
#include "pthread/preload/libgomp_threads.hpp"

#include <dlfcn.h>
#include <link.h>

#include <string_view>

#include "pthread/own_state.hpp"
#include "strata/detail/worker.hpp"
#include "strata/pthread.h"

namespace strata::preload {
namespace {

// What is loaded there. It may have come by dlopen(). Without the loader's lock where there is such
// a call: a constructor of a library may wait with it for the thread that it makes.
std::string_view object_at(void* address) noexcept {
#if __GLIBC_PREREQ(2, 35)
  dl_find_object found{};
  if (_dl_find_object(address, &found) != 0 || found.dlfo_link_map == nullptr) return {};
  return found.dlfo_link_map->l_name;
#else
  Dl_info found{};
  if (dladdr(address, &found) == 0 || found.dli_fname == nullptr) return {};
  return found.dli_fname;
#endif
}

}  // namespace

int create_thread(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                  void* argument) {
  // Packages of Python's have one of their own, libgomp-1b2c3d4e.so.1.
  const std::string_view path = object_at(__builtin_return_address(0));
  if (!path.substr(path.rfind('/') + 1).starts_with("libgomp"))
    return strata_pthread_create(thread, attributes, start, argument);
  // It is no worker: it runs where the caller may, and takes the signals that the caller takes, as
  // do programs that it starts.
  const detail::uninterrupted guard;
  const detail::posix::own_state of_caller;
  return pthread_create(thread, attributes, start, argument);
}

}  // namespace strata::preload
