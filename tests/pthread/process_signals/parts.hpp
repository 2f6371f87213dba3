// SPDX-License-Identifier: Apache-2.0
// The parts of this program, each of which is right or counts what is wrong (support.hpp).
#pragma once

namespace process_signals {

// ends.cpp
void all_waits();
void server();
// lasts.cpp
void restarts();
void goes_on();
void computes();
void computes_beside_who_sends();
// told.cpp
void told();
void queued();
// setting.cpp
void setting();
void old_ways();
// ignored.cpp
void ignored();
// blocked.cpp
void blocked();
void masks_in_handlers();
// threads.cpp
void another_thread();
void posting();
void storm();
// alone.cpp
void alone();
void sent_by_system_calls();
// children.cpp
void in_a_child();
void child_of_a_thread();
void forks_in_a_handler();
void sets_signals_in_a_child();
void sets_signals_as_another_user();

}  // namespace process_signals
