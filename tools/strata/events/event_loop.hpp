// SPDX-License-Identifier: Apache-2.0
// What launcher and agent do all day: wait for descriptors, one thread. A callback may watch and
// forget any descriptor, its own too.
#pragma once
#include <cstdint>
#include <functional>
#include <unordered_map>

#include "os/descriptor.hpp"

namespace strata::launcher {

inline constexpr std::int64_t no_deadline = INT64_MAX;

class event_loop {
 public:
  using callback = std::function<void()>;

  event_loop();

  // Calls `ready` each time fd can be read or has ended (written to: can be written or nobody reads
  // any more). False when fd is one that never makes anybody wait, a regular file; it is not
  // watched then. An empty function ends it.
  bool watch_reads(int fd, callback ready);
  bool watch_writes(int fd, callback ready);
  // Before the descriptor is closed.
  void forget(int fd);

  // Waits until something is ready or the time has come, and calls what is due.
  void run_once(std::int64_t deadline_ns);

 private:
  struct watched {
    std::uint32_t generation = 0;
    callback read, write;
  };
  bool update(int fd, watched& w, bool is_new);
  bool set(int fd, callback watched::*which, callback ready);

  os::descriptor epoll_;
  std::uint32_t generation_ = 0;  // an event of a descriptor that was closed meanwhile is not
                                  // taken for one of its successor
  std::unordered_map<int, watched> watched_;
};

}  // namespace strata::launcher
