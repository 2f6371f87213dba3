// SPDX-License-Identifier: Apache-2.0
// What the program of whole jobs does to lose a node, and whoever waits for it.
#pragma once
#include "strata/runtime.hpp"

// Node 1 is killed, stops, or leaves without a word, and nobody else does.
void lose_killed(strata::runtime& rt);
void lose_stopped(strata::runtime& rt);
void lose_leaver(strata::runtime& rt);
void kill_thief(strata::runtime& rt);
void kill_caller(strata::runtime& rt);
void kill_receiver(strata::runtime& rt);
void kill_victim(strata::runtime& rt);
void kill_gateway(strata::runtime& rt);
void talk_across(strata::runtime& rt);
void kill_under_wait_idle(strata::runtime& rt);
