// SPDX-License-Identifier: Apache-2.0
// A program whose threads wait for each other through descriptors: natively, and as it is under
// `strata pthread` with one worker, where each of these waits would be for ever if it stopped the
// worker. Status 0 if all is right.
#include <pthread.h>
#include <signal.h>

#include <array>
#include <cstdio>
#include <cstring>

#include "parts.hpp"
#include "support.hpp"

int main(int argc, char** argv) {
  using namespace descriptors;
  constexpr std::array parts_of_it{
      part{"ring", &ring},
      part{"large_writes", &large_writes},
      part{"named_pipe", &named_pipe},
      part{"parts", &parts},
      part{"many_readers", &many_readers},
      part{"not_to_wait", &not_to_wait},
      part{"all_of_it", &all_of_it},
      part{"with_control", &with_control},
      part{"low_water", &low_water},
      part{"datagrams", &datagrams},
      part{"several_messages", &several_messages},
      part{"echo_local", &echo_local},
      part{"echo_inet", &echo_inet},
      part{"timeouts", &timeouts},
      part{"polls", &polls},
      part{"selects", &selects},
      part{"sets_of_many", &sets_of_many},
      part{"select_beyond", &select_beyond},
      part{"epolls", &epolls},
      part{"counters_and_timers", &counters_and_timers},
      part{"counters_by_name", &counters_by_name},
      part{"terminals", &terminals},
      part{"terminals_that_need_no_bytes", &terminals_that_need_no_bytes},
      part{"files", &files},
      part{"streams", &streams},
      part{"streams_that_end", &streams_that_end},
      part{"streams_asked_for_nothing", &streams_asked_for_nothing},
      part{"streams_of_both_ways", &streams_of_both_ways},
      part{"interrupted_streams", &interrupted_streams},
      part{"names", &names},
      part{"cancellation", &cancellation},
      part{"interruption", &interruption},
      part{"signals_for_all", &signals_for_all},
      part{"handlers", &handlers},
      part{"handlers_that_take", &handlers_that_take},
      part{"closed_meanwhile", &closed_meanwhile},
      part{"replaced_meanwhile", &replaced_meanwhile},
      part{"replaced_counters", &replaced_counters},
      part{"replaced_counters_alike", &replaced_counters_alike},
      part{"replaced_while_writing", &replaced_while_writing},
      part{"closed_without_knowing", &closed_without_knowing},
      part{"ranges_that_are_none", &ranges_that_are_none},
      part{"replaced_without_knowing", &replaced_without_knowing},
      part{"replaced_beside_many", &replaced_beside_many},
      part{"replaced_without_room", &replaced_without_room},
      part{"replaced_in_a_child", &replaced_in_a_child},
      part{"replaced_in_handlers", &replaced_in_handlers},
      part{"broken_pipes", &broken_pipes},
      part{"descriptors_of_a_child", &descriptors_of_a_child},
      part{"forked", &forked},
  };
  // Before there are threads.
  sigset_t usr2;
  sigemptyset(&usr2);
  sigaddset(&usr2, SIGUSR2);
  pthread_sigmask(SIG_BLOCK, &usr2, nullptr);
  // Arguments: the one to run.
  run_parts(parts_of_it, argc, argv);
  return status_of_all();
}
