// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace strata::launch::pmix {

// Whether this build can join jobs of PMIx. libpmix is looked for when one is there.
[[nodiscard]] bool is_built() noexcept;

// For people whose program was started by PMIx when it is not.
[[nodiscard]] const char* how_to_get() noexcept;

// Loads libpmix and says which it is, or why it cannot be loaded; for people.
[[nodiscard]] std::string describe();

// Connects to the server of the job that this process belongs to: "node 1 of 4, 2 of them on this
// host". Throws strata::error.
[[nodiscard]] std::string describe_job();

}  // namespace strata::launch::pmix
