// SPDX-License-Identifier: Apache-2.0
// Threads wait in places that belong to the process and not to their runtime. What is suspended
// there when a runtime ends is never continued, and must not be found by others any more.
#pragma once

namespace strata::detail {

class scheduler;

// Once this has returned nobody chooses a stack of `s` that waited at an address before; who has
// done so already has been admitted (scheduler::admit_foreign_waker()). Defined in threads/.
void forget_parked_of(scheduler& s) noexcept;
// After that, and when no worker of `s` runs any more, while its stacks still exist: nor does
// anybody of `s` wait for a descriptor, or for a turn at one; who had one passes it on. Likewise.
void forget_descriptor_waits_of(const scheduler& s) noexcept;

}  // namespace strata::detail
