// SPDX-License-Identifier: Apache-2.0
// What the program of whole jobs does with messages that wait for room.
#pragma once
#include "strata/runtime.hpp"

void slow_receiver(strata::runtime& rt);
void room_in_turn(strata::runtime& rt);
void cancelled_send(strata::runtime& rt);
void given_up(strata::runtime& rt);
void eager_limit(strata::runtime& rt);
void outlives_its_runtime(strata::runtime& rt);
