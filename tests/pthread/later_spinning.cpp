// SPDX-License-Identifier: Apache-2.0
// later_spinning LIBRARY: a program that loads it, and whose threads compute there and never wait,
// while what they are after is for another thread to do; and again when it has been closed and
// loaded anew. Run natively, and as it is under `strata pthread`. Status 0 if all is right.
#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <semaphore>
#include <thread>

#include "tests/pthread/spinning_library.hpp"

namespace {

using spin = decltype(&spin_in_library);

void thread_spins_in(spin in_library) {
  std::binary_semaphore begun(0);
  std::atomic<bool> flag{false};
  std::thread spins([&] {
    begun.release();
    in_library(flag);
  });
  begun.acquire();
  std::thread sets([&] { flag = true; });
  spins.join();
  sets.join();
}

void main_spins_in(spin in_library) {
  std::atomic<bool> flag{false};
  std::thread sets([&] { flag = true; });
  in_library(flag);
  sets.join();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  for (int round = 0; round < 3; ++round) {
    void* const library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    void* const found = library != nullptr ? dlsym(library, "spin_in_library") : nullptr;
    if (found == nullptr) {
      std::printf("wrong: %s\n", dlerror());
      return 1;
    }
    const auto in_library = reinterpret_cast<spin>(found);
    thread_spins_in(in_library);
    // Another handle of it is closed: it stays, and so does what is known of it.
    dlclose(dlopen(argv[1], RTLD_NOW | RTLD_LOCAL));
    main_spins_in(in_library);
    if (dlclose(library) != 0 || dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD) != nullptr) {
      std::printf("wrong: the library stays\n");
      return 1;
    }
  }
  return 0;
}
