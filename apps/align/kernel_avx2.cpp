// SPDX-License-Identifier: Apache-2.0
#define STRATA_ALIGN_SET avx2
#define STRATA_ALIGN_BYTES 32
#include "kernel_impl.hpp"

namespace align {

const kernel_set& avx2_kernels() {
  static const kernel_set set = avx2::make_set("avx2");
  return set;
}

}  // namespace align
