// SPDX-License-Identifier: Apache-2.0
// What travels between a process and the guard of its children (guard.hpp), which is its own copy:
// over a stream socket, a request with the descriptors that belong to it and then, but for a
// signal, an answer; and over a pipe, a report for each child that has ended.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "os/descriptor.hpp"
#include "tools/strata/processes/child.hpp"

namespace strata::launcher {

enum class guard_word : std::uint8_t {
  start = 1,
  signal = 2,
  kill_orphans = 3,
  signal_outside = 4,  // unless it is in the launcher's group
};

struct guard_request {
  guard_word word = guard_word::start;
  child_id id = 0;       // of who is started or signalled
  int number = 0;        // the signal
  child_request what{};  // to start
};

struct guard_answer {
  std::int32_t code = 0;  // errno; 0: it runs
  std::int32_t in_directory = 0;
};

struct guard_report {
  std::int32_t id = 0;
  std::int32_t wait_status = 0;
};

// All of these block. False, or nothing: the other side is gone.
[[nodiscard]] bool send_request(int socket, const guard_request& request);
// `in`, `out`, `err` and `keep` are the sender's numbers; `descriptors` are for these, in order.
[[nodiscard]] std::optional<guard_request> receive_request(
    int socket, std::vector<os::descriptor>& descriptors);
[[nodiscard]] bool send_answer(int socket, const guard_answer& answer);
[[nodiscard]] std::optional<guard_answer> receive_answer(int socket);

}  // namespace strata::launcher
