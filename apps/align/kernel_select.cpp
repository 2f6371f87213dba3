// SPDX-License-Identifier: Apache-2.0
#include <string_view>

#include "apps/align/kernel.hpp"

namespace align {

const kernel_set* find_kernels(const char* name) {
  const auto wanted = [&](std::string_view set) { return name == nullptr || set == name; };
#if defined(STRATA_ALIGN_WIDE_KERNELS)
  __builtin_cpu_init();
  if (wanted("avx512") && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")) {
    return &avx512_kernels();
  }
  if (wanted("avx2") && __builtin_cpu_supports("avx2")) return &avx2_kernels();
#endif
  return wanted("baseline") ? &baseline_kernels() : nullptr;
}

}  // namespace align
