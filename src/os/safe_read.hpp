// SPDX-License-Identifier: Apache-2.0
// Reading memory that somebody may be changing or giving back meanwhile.
#pragma once
#include <cstddef>

namespace strata::os {

/// Copies `bytes` from `from`, like memcpy(), but is false where the memory cannot be read, instead
/// of a fault. The copy is made by the kernel: for the language, and for the sanitizers, nobody has
/// looked. What others write meanwhile may be copied in part. About a microsecond.
bool safe_read(void* to, const void* from, std::size_t bytes) noexcept;

}  // namespace strata::os
