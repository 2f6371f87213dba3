// SPDX-License-Identifier: Apache-2.0
// A program that is not position independent, and takes the addresses of functions of the C and the
// C++ library: they are in its own code, as jumps, and none of them is its own for that. Under
// `strata pthread` with one worker its main() has to give way. Status 0 if all is right.
#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <new>
#include <thread>

using allocator = void* (*)(std::size_t);
static volatile allocator of_c;
static volatile allocator of_cxx;

int main() {
  of_c = &std::malloc;  // here, in code: in data they would be the libraries'
  of_cxx = &::operator new;
  std::free(of_c(1));
  ::operator delete(of_cxx(1));
  std::atomic<bool> flag{false};
  std::thread sets([&] { flag = true; });
  const std::time_t too_late = std::time(nullptr) + 100;
  while (!flag && std::time(nullptr) < too_late) {
  }
  if (!flag) std::puts("the thread has had no turn");
  const bool is_right = flag;
  sets.join();
  return is_right ? 0 : 1;
}
