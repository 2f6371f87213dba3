// SPDX-License-Identifier: Apache-2.0
// later_critical LIBRARY: a program that loads it, and whose threads compute there, each for longer
// than a turn lasts, in what only one of them may be in, by OpenMP. Run natively, and as it is
// under `strata pthread`. Status 0 if all is right.
#include <dlfcn.h>

#include <cstdio>
#include <thread>
#include <vector>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  void* const library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  void* const found = library != nullptr ? dlsym(library, "compute_alone") : nullptr;
  if (found == nullptr) {
    std::printf("wrong: %s\n", dlerror());
    return 1;
  }
  const auto compute_alone = reinterpret_cast<void (*)()>(found);
  std::vector<std::thread> all;
  for (int i = 0; i < 4; ++i) all.emplace_back(compute_alone);
  for (std::thread& t : all) t.join();
  return 0;
}
