// SPDX-License-Identifier: Apache-2.0
// What UCX is told unless the user says otherwise (in the environment, not in a ucx.conf), and
// which of its versions need it. A build runs with every libucp.so.0 from 1.13 on, so it asks the
// one that is loaded.
#pragma once
#include <compare>
#include <vector>

namespace strata::net::ucx {

struct version {
  unsigned generation;  // the 1 of 1.16.0
  unsigned series;      // the 16
  friend auto operator<=>(const version&, const version&) = default;
};

struct preference {
  const char* variable;  // where the user says otherwise: "UCX_ZCOPY_THRESH"
  const char* name;      // as ucp_config_modify() knows it
  const char* value;
};

// some_unreachable: connecting must not block for as long as the system tries.
[[nodiscard]] std::vector<preference> preferences_for(version library, bool some_unreachable);

}  // namespace strata::net::ucx
