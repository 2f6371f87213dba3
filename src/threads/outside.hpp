// SPDX-License-Identifier: Apache-2.0
// Threads that are made outside any runtime belong to one that the process has for them. Whose
// threads those are otherwise, and when it is started, only src/pthread knows, which defines this.
#pragma once

namespace strata::detail {

class scheduler;

// Started by the first who asks, and throws where it cannot be; see pthread/process_runtime.hpp.
scheduler& runtime_of_process();

}  // namespace strata::detail
