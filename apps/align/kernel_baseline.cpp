// SPDX-License-Identifier: Apache-2.0
#define STRATA_ALIGN_SET baseline
#define STRATA_ALIGN_BYTES 16
#include "kernel_impl.hpp"

namespace align {

const kernel_set& baseline_kernels() {
  static const kernel_set set = baseline::make_set("baseline");
  return set;
}

}  // namespace align
