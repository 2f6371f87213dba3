// SPDX-License-Identifier: Apache-2.0
// Whose messenger the calling thread uses: that of the runtime in which it runs.
#pragma once

namespace strata::detail {
class worker;
}

namespace strata::messages {

class messenger;

// That of w's runtime; null outside any.
[[nodiscard]] messenger* messenger_of(const strata::detail::worker& w);
[[nodiscard]] messenger* messenger_here();
// Throws misuse_error(refusal) there.
[[nodiscard]] messenger& messenger_or_refusal(const strata::detail::worker& w, const char* refusal);
[[nodiscard]] messenger& messenger_or_refusal(const char* refusal);

}  // namespace strata::messages
