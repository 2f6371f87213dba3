// SPDX-License-Identifier: Apache-2.0
// How long the course of a job waits for what, and what its parts say alike.
#pragma once
#include <cstdint>

namespace strata::launcher {

// From a request to end to the next stronger one.
inline constexpr std::int64_t grace_ns = 2'000'000'000;
// For what a program still does about a loss.
inline constexpr std::int64_t own_end_ns = 10'000'000'000;
// For the other nodes to fail in the same way.
inline constexpr std::int64_t settle_ns = 1'000'000'000;
// From the end of a line to that of its process. A process that is killed closes its line first,
// and the kernel may take seconds for what else it has: sockets, for example, while namespaces of
// networks are taken down.
inline constexpr std::int64_t line_grace_ns = 10'000'000'000;
inline constexpr std::int64_t straggler_limit_ns = 10'000'000'000;
inline constexpr std::int64_t give_up_ns = 5'000'000'000;  // from SIGKILL on
// Some tools signal a process and then its whole group; that is one request.
inline constexpr std::int64_t same_request_ns = 250'000'000;

inline constexpr const char* job_is_stopped = "; the job is stopped";

}  // namespace strata::launcher
