// SPDX-License-Identifier: Apache-2.0
// A program whose main() and threads wait while signals come for the process: natively, and as it
// is under `strata pthread`. Status 0 if all is right.
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <thread>

#include "parts.hpp"
#include "support.hpp"

int main(int argc, char** argv) {
  using namespace process_signals;
  constexpr std::array parts{
      part{"all_waits", &all_waits},
      part{"restarts", &restarts},
      part{"server", &server},
      part{"goes_on", &goes_on},
      part{"computes", &computes},
      part{"computes_beside_who_sends", &computes_beside_who_sends},
      part{"told", &told},
      part{"queued", &queued},
      part{"setting", &setting},
      part{"ignored", &ignored},
      part{"blocked", &blocked},
      part{"another_thread", &another_thread},
      part{"posting", &posting},
      part{"in_a_child", &in_a_child},
      part{"storm", &storm},
      part{"masks_in_handlers", &masks_in_handlers},
      part{"old_ways", &old_ways},
      part{"child_of_a_thread", &child_of_a_thread},
      part{"alone", &alone},
      part{"forks_in_a_handler", &forks_in_a_handler},
      part{"sets_signals_in_a_child", &sets_signals_in_a_child},
      part{"sets_signals_as_another_user", &sets_signals_as_another_user},
      part{"sent_by_system_calls", &sent_by_system_calls},
  };
  SAME(sem_init(&one_handled, 0, 0), 0);
  // Without threads, and with one that waits.
  for (const bool alone : {true, false}) {
    sem_t end;
    sem_init(&end, 0, 0);
    std::thread company;
    // It has all blocked from the beginning.
    sigset_t all;
    sigset_t before_it;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_it);
    if (!alone)
      company = std::thread([&] {
        while (sem_wait(&end) != 0) {
        }
      });
    pthread_sigmask(SIG_SETMASK, &before_it, nullptr);
    run_parts(parts, argc, argv, alone ? "" : ", with another thread");
    if (alone) continue;
    sem_post(&end);
    company.join();
  }
  return status_of_all();
}
