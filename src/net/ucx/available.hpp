// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace strata::net::ucx {

// Whether this build has the transport. libucp is looked for when one is made.
[[nodiscard]] bool is_built() noexcept;

// For people who asked for it when it is not.
[[nodiscard]] const char* how_to_get() noexcept;

}  // namespace strata::net::ucx
