// SPDX-License-Identifier: Apache-2.0
// Which memory of the program other processes see, too.
#pragma once

namespace strata::preload {

// Whether what lies at `address`, which has been read, may be seen by other processes: it has been
// mapped so, by mmap(), mremap() or shmat(), and as far as the kernel tells still is.
bool is_seen_by_others(const void* address) noexcept;

}  // namespace strata::preload
