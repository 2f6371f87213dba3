// SPDX-License-Identifier: Apache-2.0
#define STRATA_ALIGN_SET avx512
#define STRATA_ALIGN_BYTES 64
#include "kernel_impl.hpp"

namespace align {

const kernel_set& avx512_kernels() {
  static const kernel_set set = avx512::make_set("avx512");
  return set;
}

}  // namespace align
