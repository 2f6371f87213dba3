// SPDX-License-Identifier: Apache-2.0
// Where a thread of the program may be interrupted, as far as code goes: in the executable, and in
// the libraries that it is linked with, or that dlopen() brings. Not in the system's, whose locks
// belong to OS threads; not in what allocates memory, which the runtime calls in between; and not
// in what comes by dlopen() while its constructors run, with the loader's lock, or while something
// is closed, whose place another one may take.
#pragma once
#include <cstdint>

namespace strata::preload {

// Looks what there is; before the program's main(), once.
void find_program_code();
// When what has been loaded since is used, and its thread-local variables are known.
void find_later_program_code();
// Nothing is before that, nor where memory is allocated by the executable itself: what does so
// cannot be told from the rest. Async-signal-safe.
[[nodiscard]] bool is_program_code(std::uintptr_t at) noexcept;

// While one exists a library may go.
class closing_library {
 public:
  closing_library() noexcept;
  ~closing_library();
  closing_library(const closing_library&) = delete;
  closing_library& operator=(const closing_library&) = delete;
};

}  // namespace strata::preload
