// SPDX-License-Identifier: Apache-2.0
// A program that knows nothing of strata and keeps values for each of its threads over everything
// that waits: run natively, and as it is under `strata pthread`. Status 0 if all are right.
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "tests/pthread/locals_library.hpp"

namespace {

constexpr int threads = 24;
constexpr int rounds = 60;

std::atomic<int> wrong{0};
std::atomic<int> ended{0};

void check(bool right, const char* what) {
  if (!right && wrong.fetch_add(1) < 10) std::printf("wrong: %s\n", what);
}

struct noted {
  std::string text;  // too long to lie in the object
  ~noted() {
    check(text.size() == 100 + static_cast<std::size_t>(text[0]), "object at the end");
    ended.fetch_add(1);
  }
};

__thread int number = 7;
// Given by the build: the runtime keeps little on the stack of who waits, and more on the heap.
__thread std::array<char, LARGE_BYTES> large;
thread_local noted object;

__thread int set_before_main;
// Not known before it runs: clang 14 makes a known value every thread's first.
[[gnu::constructor]] void begin_early() { set_before_main = getpid() > 0 ? 11 : 0; }

pthread_barrier_t barrier;
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t turn_changed = PTHREAD_COND_INITIALIZER;
sem_t semaphore;
int turn = 0;

void wait_somehow(int me, int round) {
  switch (round % 5) {
    case 0:
      pthread_barrier_wait(&barrier);
      break;
    case 1:
      pthread_mutex_lock(&mutex);
      while (turn != me) pthread_cond_wait(&turn_changed, &mutex);
      turn = (turn + 1) % threads;
      pthread_cond_broadcast(&turn_changed);
      pthread_mutex_unlock(&mutex);
      break;
    case 2:
      sem_wait(&semaphore);
      sched_yield();
      sem_post(&semaphore);
      break;
    case 3:
      usleep(1);  // nothing waits for the time: sleeping is one of the calls that suspend
      break;
    default:
      sched_yield();
  }
}

void* body(void* argument) {
  const int me = static_cast<int>(reinterpret_cast<std::intptr_t>(argument));
  check(number == 7, "initial value");
  check(large.front() == 0 && large.back() == 0, "zeros at first");
  check(set_before_main == 0, "what a constructor has set for another thread");
  long* const theirs = count_of_library();
  check(*theirs == 40, "initial value of a library");
  int* volatile const address = &number;
  for (int round = 0; round < rounds; ++round) {
    number = 1000 * me + round;
    *theirs = 1000 * me - round;
    large.front() = static_cast<char>(round);
    large.back() = static_cast<char>(me);
    object.text.assign(100 + static_cast<std::size_t>(me), static_cast<char>(me));
    wait_somehow(me, round);
    check(number == 1000 * me + round, "value after a wait");
    check(*address == number && address == &number, "address after a wait");
    check(*theirs == 1000 * me - round, "value of a library by its address");
    check(count_of_library() == theirs, "address of a library's");
    check(large.front() == static_cast<char>(round), "front of the large value after a wait");
    check(large.back() == static_cast<char>(me), "back of the large value after a wait");
    check(object.text.size() == 100 + static_cast<std::size_t>(me), "object after a wait");
  }
  return nullptr;
}

void* brief(void*) {
  check(number == 7, "initial value after others");
  number = 8;
  return nullptr;
}

}  // namespace

int main() {
  check(set_before_main == 11, "what a constructor has set for main()");
  check(find_behind_library("getpid") != nullptr, "a function of the C library");
  check(find_behind_library("count_of_library") == nullptr, "what only the library itself has");
  number = 5;
  object.text = std::string(101, '\1');
  pthread_barrier_init(&barrier, nullptr, threads);
  sem_init(&semaphore, 0, 2);
  std::vector<pthread_t> all(threads);
  for (int i = 0; i < threads; ++i)
    pthread_create(&all[static_cast<std::size_t>(i)], nullptr, &body,
                   reinterpret_cast<void*>(std::intptr_t{i}));
  for (const pthread_t t : all) pthread_join(t, nullptr);
  check(number == 5, "main's value after all");
  check(object.text.size() == 101, "main's object after all");
  check(ended == threads, "destructors at the ends of threads");
  for (int i = 0; i < 100; ++i) {
    pthread_t one;
    pthread_create(&one, nullptr, &brief, nullptr);
    pthread_join(one, nullptr);
    check(number == 5, "main's value after one");
  }
  std::printf("%d wrong\n", wrong.load());
  return wrong == 0 ? 0 : 1;
}
