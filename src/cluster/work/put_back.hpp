// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <exception>
#include <new>

#include "cluster/words/surroundings.hpp"
#include "strata/detail/remote.hpp"
#include "strata/detail/task.hpp"
#include "strata/detail/worker.hpp"

namespace strata::cluster {

// A task that was to go elsewhere runs here after all. Where there is no memory to queue it, it is
// given up, and whoever waits for it hears so: from where tasks are sent nothing may be thrown.
inline void put_back(local_node& here, detail::task& t, detail::worker& frames) {
  try {
    here.run_soon(&t);
  } catch (const std::bad_alloc&) {
    const std::exception_ptr error = std::current_exception();
    const detail::wire_type* const wire = t.type->wire;
    if (wire != nullptr && wire->accept != nullptr) {
      wire->accept(t, error, nullptr);
    } else {
      t.type->abandon(t, frames);
      here.fail(error);
    }
  }
}

}  // namespace strata::cluster
