// SPDX-License-Identifier: Apache-2.0
// What the program of whole jobs does to wait for what does not come.
#pragma once
#include "strata/runtime.hpp"

void stall(strata::runtime& rt);
void ask_and_stall(strata::runtime& rt);
void stall_in_receive(strata::runtime& rt);
void stall_in_send(strata::runtime& rt);
void stall_in_semaphore(strata::runtime& rt);
void stall_for_a_name(strata::runtime& rt);
void stall_elsewhere(strata::runtime& rt);
void flood_stopped(strata::runtime& rt);
void pause_0(strata::runtime& rt);
void pause_1(strata::runtime& rt);
void stop_0(strata::runtime& rt);
void stop_0_while_1_is_deaf(strata::runtime& rt);
