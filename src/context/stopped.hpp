// SPDX-License-Identifier: Apache-2.0
// Where an OS thread is that runs, for backtraces. It is stopped for that as a debugger stops
// threads, by a child that has this process's memory: no signal is sent, so no handler runs, no
// call of the program ends early, and what the thread has blocked does not matter. (The method is
// that of LeakSanitizer's StopTheWorld.)
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "context/frame_state.hpp"

namespace strata::detail {

struct stopped_frame {
  std::uintptr_t pc = 0;  // the next instruction
  frame_registers registers;
  stack_copy stack;
};

// Stops `os_thread`, another thread of this process, for some 50 us: copies its registers and what
// lies on its stack up to `top`, as much as fits into `memory`, nothing if it is on another one.
// Null where that is not allowed (somebody traces this process already, a container forbids it,
// ThreadSanitizer watches), and when the thread does not stop within 100 ms.
std::optional<stopped_frame> stop_and_look(int os_thread, std::uintptr_t top,
                                           std::span<std::byte> memory);

}  // namespace strata::detail
