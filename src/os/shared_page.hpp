// SPDX-License-Identifier: Apache-2.0
// Which memory is the process's own.
#pragma once

namespace strata::os {

/// Whether the page at `address`, which has been read or written before, may be one that other
/// processes see as well: of a file, or of memory that is shared. Also true where the kernel does
/// not tell: it is asked through /proc. Never blocks for long; some microseconds. Changes errno.
bool may_be_shared(const void* address) noexcept;

}  // namespace strata::os
