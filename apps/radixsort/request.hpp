// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "apps/common/program.hpp"
#include "apps/radixsort/digits.hpp"

namespace radixsort {

// What the command line asks for.
struct request {
  unsigned keys_log2 = 22;
  unsigned threads = 256;
  unsigned radix_bits_first = 8;
  unsigned radix_bits_last = 8;
  std::string sync = "barrier";   // or "fork"
  std::string engine = "strata";  // or "nptl"
  unsigned repetitions = 1;
};

// Adds the flags to p, parses the command line, and puts --policy into the runtime's options.
// Throws strata::user_error for what can be put right.
request parse_request(apps::program& p);

}  // namespace radixsort
