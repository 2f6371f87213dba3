// SPDX-License-Identifier: Apache-2.0
// What a kernel reads and writes of memory that tiles share, told to ThreadSanitizer a range at a
// time: the kernels are compiled without its checks, which are a call for each vector. Nothing in
// other builds.
#pragma once

#include <cstddef>
#include <strata/detail/cpu.hpp>

#if defined(STRATA_TSAN)
extern "C" {
void __tsan_read_range(void* begin, unsigned long bytes);
void __tsan_write_range(void* begin, unsigned long bytes);
}
#endif

namespace align {

inline void kernel_reads([[maybe_unused]] const void* begin,
                         [[maybe_unused]] std::ptrdiff_t bytes) {
#if defined(STRATA_TSAN)
  if (bytes > 0) __tsan_read_range(const_cast<void*>(begin), static_cast<std::size_t>(bytes));
#endif
}

inline void kernel_writes([[maybe_unused]] void* begin, [[maybe_unused]] std::ptrdiff_t bytes) {
#if defined(STRATA_TSAN)
  if (bytes > 0) __tsan_write_range(begin, static_cast<std::size_t>(bytes));
#endif
}

}  // namespace align
