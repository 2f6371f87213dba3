/* SPDX-License-Identifier: Apache-2.0 */
/* A program with the note that Go's linker leaves: under `strata pthread`, too, its threads are
   kernel threads, for what Go compiles waits in the kernel by itself. Status 0 if all is right. */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

__attribute__((section(".note.go.buildid"), aligned(4), used)) static const struct {
  uint32_t name_bytes, bytes, kind;
  char name[4], id[4];
} note = {4, 4, 4, "Go", "id"};

enum { threads = 16 };
static pthread_barrier_t all_there;
static pid_t number[threads + 1];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int count;

static void* body(void* mine) {
  int i;
  *(pid_t*)mine = gettid();
  pthread_barrier_wait(&all_there); /* nobody gets the number of one that has ended */
  for (i = 0; i < 1000; ++i) {
    pthread_mutex_lock(&mutex);
    ++count;
    pthread_mutex_unlock(&mutex);
  }
  return mine;
}

int main(void) {
  pthread_t all[threads];
  int same = 0, failed = 0, i, j;
  number[threads] = gettid();
  pthread_barrier_init(&all_there, NULL, threads);
  for (i = 0; i < threads; ++i) failed += pthread_create(&all[i], NULL, body, &number[i]) != 0;
  for (i = 0; i < threads; ++i) {
    void* result = NULL;
    failed += pthread_kill(all[i], 0) != 0;
    failed += pthread_join(all[i], &result) != 0 || result != &number[i];
  }
  for (i = 0; i <= threads; ++i)
    for (j = 0; j < i; ++j) same += number[i] == number[j];
  printf("%d pairs with one number, %d failed, %d counted\n", same, failed, count);
  return same == 0 && failed == 0 && count == threads * 1000 ? 0 : 1;
}
