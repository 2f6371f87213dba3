// SPDX-License-Identifier: Apache-2.0
#include <system_error>

#include "strata/mutex.hpp"

namespace strata {

void recursive_mutex::refuse_depth() {
  throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again),
                          "strata::recursive_mutex: locked too often by one thread");
}

}  // namespace strata
