// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>

// Comes back when `flag` is set; calls nothing.
extern "C" void spin_in_library(const std::atomic<bool>& flag);
