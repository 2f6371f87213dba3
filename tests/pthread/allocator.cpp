// SPDX-License-Identifier: Apache-2.0
// A program with an allocator of its own (allocator_library.cpp), whose threads and children ask it
// for memory at the same time, and which asks the runtime. Status 0 if all is right.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "checks.hpp"

using namespace pthread_programs;

extern "C" void wait_with_a_lock();  // of the library

namespace {

constexpr int threads_at_once = 8;

// Memory, and threads, which the runtime makes of memory.
void ask_for_some() {
  std::vector<std::unique_ptr<std::string>> all;
  for (int i = 0; i < 300; ++i) all.push_back(std::make_unique<std::string>(40, 'x'));
  std::thread([] { std::make_unique<std::string>(40, 'y').reset(); }).join();
}

}  // namespace

int main() {
  std::atomic<bool> has_to_end{false};
  std::vector<std::thread> all;
  for (int i = 0; i < threads_at_once; ++i) {
    all.emplace_back([&] {
      while (!has_to_end) ask_for_some();
    });
  }
  for (int i = 0; i < 40; ++i) {
    ask_for_some();
    const pid_t child = fork();
    if (child == 0) {
      ask_for_some();
      _exit(0);
    }
    int status = 0;
    SAME(waitpid(child, &status, 0), child);
    SAME(status, 0);
  }
  has_to_end = true;
  for (std::thread& one : all) one.join();
  std::thread other(&wait_with_a_lock);
  wait_with_a_lock();
  other.join();
  return status_of_all();
}
