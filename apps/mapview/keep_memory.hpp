// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdlib>  // says which C library it is

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace mapview {

// Each picture takes and gives back some hundred KiB, which the C library would fetch from the
// system and return every time: half of the time of a small region. Before the first of them.
inline void keep_memory() {
#if defined(__GLIBC__)
  ::mallopt(M_MMAP_THRESHOLD, 4 << 20);
  ::mallopt(M_TRIM_THRESHOLD, 16 << 20);
#endif
}

}  // namespace mapview
