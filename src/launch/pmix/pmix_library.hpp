// SPDX-License-Identifier: Apache-2.0
// libpmix's functions. The library is loaded when a process finds that PMIx has started it; no
// other program that links Strata needs it.
#pragma once
#include <pmix.h>

namespace strata::launch::pmix {

#define STRATA_PMIX_FUNCTIONS(X) \
  X(PMIx_Abort)                  \
  X(PMIx_Commit)                 \
  X(PMIx_Error_string)           \
  X(PMIx_Fence_nb)               \
  X(PMIx_Finalize)               \
  X(PMIx_Get_nb)                 \
  X(PMIx_Get_version)            \
  X(PMIx_Init)                   \
  X(PMIx_Put)                    \
  X(PMIx_Register_event_handler)

struct pmix_library {
#define STRATA_PMIX_MEMBER(name) decltype(&::name) name = nullptr;
  STRATA_PMIX_FUNCTIONS(STRATA_PMIX_MEMBER)
#undef STRATA_PMIX_MEMBER

  // Loads it once; it stays until the process ends, since its threads do. When MPI has it already,
  // this is the same one. Throws strata::error.
  static const pmix_library& get();
};

}  // namespace strata::launch::pmix
