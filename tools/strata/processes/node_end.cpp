// SPDX-License-Identifier: Apache-2.0
#include "tools/strata/processes/node_end.hpp"

#include <cstring>

namespace strata::launcher {

std::string to_text(node_end how) {
  if (!how.signalled) return "ended with status " + std::to_string(how.code);
  const char* const abbreviation = ::sigabbrev_np(how.code);
  return "was killed by signal " + std::to_string(how.code) +
         (abbreviation != nullptr ? std::string(" (SIG") + abbreviation + ")" : "");
}

}  // namespace strata::launcher
