// SPDX-License-Identifier: Apache-2.0
// Names of threads that hold among processes, and whether the process of one has ended. All the
// processes see each other by their numbers.
#pragma once
#include <cstdint>

namespace strata::detail::posix {

// Of the calling process's thread with that record; never 0.
[[nodiscard]] std::uintptr_t name_among_processes(std::uint32_t record_index) noexcept;

// Whether the process that `name` is from has ended, also where its parent has not asked for its
// status yet. False while a new process has its number, but for the caller's own.
[[nodiscard]] bool has_process_ended(std::uintptr_t name) noexcept;

}  // namespace strata::detail::posix
