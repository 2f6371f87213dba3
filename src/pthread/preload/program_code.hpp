// SPDX-License-Identifier: Apache-2.0
// Where a thread of the program may be interrupted, as far as code goes: in the executable, and in
// the libraries that it is linked with. Not in the system's, whose locks belong to OS threads; not
// in what allocates memory, which the runtime calls in between; and not in what comes later, by
// dlopen(), and may go again.
#pragma once
#include <cstdint>

namespace strata::preload {

// Looks what there is; before the program's main(), once.
void find_program_code();
// Nothing is before that, nor where memory is allocated by the executable itself: what does so
// cannot be told from the rest. Async-signal-safe.
[[nodiscard]] bool is_program_code(std::uintptr_t at) noexcept;

}  // namespace strata::preload
