// SPDX-License-Identifier: Apache-2.0
#include "net/ucx/reach_of_devices.hpp"

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace strata::net::ucx {

// UCX has no question for that (later ones than 1.13 tell the names of the transports, which say
// less). What it prints for people names the use of each of its connections: "rma_bw" is the one
// for large blocks of remote memory. Where that word is not found, messages go as they go over
// sockets.
bool devices_read_memory(const ucp_library& ucp, ucp_ep_h endpoint) noexcept {
  char* text = nullptr;
  std::size_t bytes = 0;
  std::FILE* const to = ::open_memstream(&text, &bytes);
  if (to == nullptr) return false;
  ucp.ucp_ep_print_info(endpoint, to);
  const bool written = std::fclose(to) == 0;
  const bool found =
      written && std::string_view(text, bytes).find(" rma_bw#") != std::string_view::npos;
  std::free(text);  // NOLINT(cppcoreguidelines-no-malloc): open_memstream's
  return found;
}

}  // namespace strata::net::ucx
