// SPDX-License-Identifier: Apache-2.0
// Threads that are made outside any runtime belong to one that the process has for them. Whose
// threads those are otherwise, and when it is started, only src/pthread knows, which defines this.
#pragma once

namespace strata::detail {

class scheduler;

// Started by the first who asks, and throws where it cannot be; see pthread/process_runtime.hpp.
scheduler& runtime_of_process();
// s is one that the process has for its threads, and the size of its stacks is that of kernel
// threads: nobody has asked for it.
[[nodiscard]] bool is_size_of_kernel_threads(const scheduler& s) noexcept;

}  // namespace strata::detail
