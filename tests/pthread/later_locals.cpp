// SPDX-License-Identifier: Apache-2.0
// later_locals LIBRARY: a program that loads it while its threads wait, and whose threads then keep
// values of its own for each of them over everything that waits: run natively, and as it is under
// `strata pthread`. Status 0 if all are right.
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>

#include "tests/pthread/locals_library.hpp"

namespace {

constexpr int threads = 8;
constexpr int rounds = 60;

std::atomic<int> wrong{0};
std::atomic<int> ended{0};
pthread_barrier_t barrier;  // of main(), too
decltype(&count_of_library) count_of = nullptr;
decltype(&count_end_of_thread) count_end = nullptr;

void check(bool right, const char* what) {
  if (!right && wrong.fetch_add(1) < 10) std::printf("wrong: %s\n", what);
}

void meet() { pthread_barrier_wait(&barrier); }

void keep_own_values(long me) {
  long* const mine = count_of();
  check(*mine == 40, "initial value");
  for (int round = 0; round < rounds; ++round) {
    *mine = 1000 * me + round;
    switch (round % 3) {
      case 0:
        meet();
        break;
      case 1:
        usleep(1);
        break;
      default:
        sched_yield();
    }
    check(*mine == 1000 * me + round, "value after a wait");
    check(count_of() == mine, "address after a wait");
  }
  count_end(ended);
}

void* body(void* argument) {
  sched_yield();
  meet();  // all have begun
  meet();  // the library is there
  keep_own_values(static_cast<long>(reinterpret_cast<std::intptr_t>(argument)));
  meet();
  meet();  // it is closed
  for (int round = 0; round < rounds; ++round) sched_yield();
  return nullptr;
}

void* brief(void*) {
  check(*count_of() == 40, "initial value after others");
  *count_of() = 41;
  return nullptr;
}

void* brief_without(void*) {
  sched_yield();
  return nullptr;
}

void begin_and_end(void* (*what)(void*)) {
  for (int i = 0; i < 20; ++i) {
    pthread_t one;
    pthread_create(&one, nullptr, what, nullptr);
    pthread_join(one, nullptr);
  }
}

}  // namespace

int main(int, char** arguments) {
  pthread_barrier_init(&barrier, nullptr, threads + 1);
  std::array<pthread_t, threads> all{};
  for (std::size_t i = 0; i < all.size(); ++i)
    pthread_create(&all[i], nullptr, &body, reinterpret_cast<void*>(static_cast<std::intptr_t>(i)));
  meet();
  void* const library = dlopen(arguments[1], RTLD_NOW);
  if (library == nullptr) {
    std::printf("%s\n", dlerror());
    return 2;
  }
  count_of = reinterpret_cast<decltype(count_of)>(dlsym(library, "count_of_library"));
  count_end = reinterpret_cast<decltype(count_end)>(dlsym(library, "count_end_of_thread"));
  meet();
  keep_own_values(threads);
  begin_and_end(&brief);
  check(*count_of() == 1000 * threads + rounds - 1, "main's value after others");
  check(ended == 0, "no end yet");
  meet();
  dlclose(library);
  meet();
  begin_and_end(&brief_without);
  for (const pthread_t t : all) pthread_join(t, nullptr);
  check(ended == threads, "destructors at the ends of threads");
  std::printf("%d wrong\n", wrong.load());
  return wrong == 0 ? 0 : 1;
}
