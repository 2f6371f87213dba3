// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>

// Found by name where the library comes late.
extern "C" {

// The calling thread's; 40 at first.
long* count_of_library();
// The end of the calling thread adds 1 there.
void count_end_of_thread(std::atomic<int>& ended);
// Whoever has `name` behind the library.
void* find_behind_library(const char* name);
}
