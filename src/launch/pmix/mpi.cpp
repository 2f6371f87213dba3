// SPDX-License-Identifier: Apache-2.0
#include "launch/pmix/mpi.hpp"

#include <dlfcn.h>

namespace strata::launch::pmix {

namespace {

// The same in every implementation of MPI.
using mpi_question = int (*)(int*);

bool says_yes(const char* name) noexcept {
  const auto ask = reinterpret_cast<mpi_question>(::dlsym(RTLD_DEFAULT, name));
  int flag = 0;
  return ask != nullptr && ask(&flag) == 0 && flag != 0;
}

}  // namespace

bool mpi_is_running() noexcept { return says_yes("MPI_Initialized") && !says_yes("MPI_Finalized"); }

}  // namespace strata::launch::pmix
