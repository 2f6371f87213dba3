// SPDX-License-Identifier: Apache-2.0
// A library of the program, with variables of its own for each thread.
#include "tests/pthread/locals_library.hpp"

#include <dlfcn.h>

namespace {

thread_local long count = 40;

struct counted {
  std::atomic<int>* ended = nullptr;
  ~counted() {
    if (ended != nullptr) ended->fetch_add(1);
  }
};
thread_local counted at_end;

}  // namespace

long* count_of_library() { return &count; }
void count_end_of_thread(std::atomic<int>& ended) { at_end.ended = &ended; }
void* find_behind_library(const char* name) {
  void* volatile const found =
      dlsym(RTLD_NEXT, name);  // by a call, and no jump: the loader looks who has called
  return found;
}
