// SPDX-License-Identifier: Apache-2.0
// Whose messenger the calling thread uses: that of the runtime in which it runs.
#pragma once

namespace strata::messages {

class messenger;

// Null outside any runtime.
[[nodiscard]] messenger* office_here();
// Throws misuse_error(refusal) there.
[[nodiscard]] messenger& office_or_refusal(const char* refusal);

}  // namespace strata::messages
