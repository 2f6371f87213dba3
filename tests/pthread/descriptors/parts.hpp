// SPDX-License-Identifier: Apache-2.0
// The parts of this program, each of which is right or counts what is wrong (support.hpp).
#pragma once

namespace descriptors {

void ring();
void large_writes();
void named_pipe();
void parts();
void many_readers();
void not_to_wait();
void all_of_it();
void with_control();
void low_water();
void datagrams();
void several_messages();
void timeouts();
void polls();
void selects();
void sets_of_many();
void select_beyond();
void epolls();
void counters_and_timers();
void counters_by_name();
void terminals();
void terminals_that_need_no_bytes();
void files();
void streams();
void streams_that_end();
void streams_asked_for_nothing();
void streams_of_both_ways();
void interrupted_streams();
void names();
void cancellation();
void interruption();
void signals_for_all();
void handlers();
void handlers_that_take();
void closed_meanwhile();
void replaced_meanwhile();
void replaced_counters();
void replaced_counters_alike();
void replaced_while_writing();
void closed_without_knowing();
void ranges_that_are_none();
void replaced_without_knowing();
void replaced_beside_many();
void replaced_without_room();
void replaced_in_a_child();
void replaced_in_handlers();
void broken_pipes();
void descriptors_of_a_child();
void forked();
void echo_local();
void echo_inet();

}  // namespace descriptors
