// SPDX-License-Identifier: Apache-2.0
// libucp's functions. The library is loaded when somebody asks for them, not with every program
// that links Strata: loading it installs signal handlers and hooks memory calls.
#pragma once
#include <ucp/api/ucp.h>

#include "net/ucx/preferences.hpp"

namespace strata::net::ucx {

#define STRATA_UCP_FUNCTIONS(X)     \
  X(ucp_am_data_release)            \
  X(ucp_am_recv_data_nbx)           \
  X(ucp_am_send_nbx)                \
  X(ucp_cleanup)                    \
  X(ucp_config_modify)              \
  X(ucp_config_read)                \
  X(ucp_config_release)             \
  X(ucp_ep_close_nbx)               \
  X(ucp_ep_create)                  \
  X(ucp_ep_print_info)              \
  X(ucp_get_version)                \
  X(ucp_init_version)               \
  X(ucp_mem_map)                    \
  X(ucp_mem_unmap)                  \
  X(ucp_request_check_status)       \
  X(ucp_request_free)               \
  X(ucp_worker_arm)                 \
  X(ucp_worker_create)              \
  X(ucp_worker_destroy)             \
  X(ucp_worker_get_address)         \
  X(ucp_worker_get_efd)             \
  X(ucp_worker_progress)            \
  X(ucp_worker_release_address)     \
  X(ucp_worker_set_am_recv_handler) \
  X(ucs_status_string)

struct ucp_library {
#define STRATA_UCP_MEMBER(name) decltype(&::name) name = nullptr;
  STRATA_UCP_FUNCTIONS(STRATA_UCP_MEMBER)
#undef STRATA_UCP_MEMBER

  // Of the library, not of the headers that this was compiled with.
  [[nodiscard]] version loaded_version() const noexcept {
    version v{};
    unsigned release = 0;
    ucp_get_version(&v.generation, &v.series, &release);
    return v;
  }

  // Loads it once; it stays until the process ends, since its threads and handlers do. Throws
  // strata::error.
  static const ucp_library& get();
};

}  // namespace strata::net::ucx
