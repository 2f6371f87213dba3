// SPDX-License-Identifier: Apache-2.0
// Calls that the runtime itself makes through the C++ library: its workers are kernel threads.
#pragma once

namespace strata::preload {

// While it is not 0, what this OS thread calls by the C library's names is the C library's.
extern thread_local constinit int native_depth __attribute__((tls_model("initial-exec")));

// Where the C library, or whoever comes after us, has `name`. Ends the process when nobody has.
void* find_real(const char* name) noexcept;

}  // namespace strata::preload
