// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <barrier>
#include <thread>

namespace radixsort {

// Kernel threads, one for each of the program's: what Linux calls NPTL.
struct nptl {
  using thread = std::thread;
  template <class Completion>
  using barrier = std::barrier<Completion>;
};

// From now on threads get small stacks. The usual 8 MiB would cost nothing in memory, but glibc
// keeps only 40 MiB of stacks for re-use, and making a new one takes longer than the rest of making
// a thread.
void give_nptl_small_stacks();

// Keeps the process on so many processors, or on as many as it may use if that is fewer or the
// argument 0. Returns their number.
unsigned keep_on_processors(unsigned number);

}  // namespace radixsort
