// SPDX-License-Identifier: Apache-2.0
// Starting a process that does not outlive us.
#pragma once
#include <sys/resource.h>
#include <sys/types.h>

#include <csignal>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "os/descriptor.hpp"
#include "tools/strata/events/event_loop.hpp"
#include "tools/strata/events/signals.hpp"
#include "tools/strata/processes/node_end.hpp"

namespace strata::launcher {

enum class guard_word : std::uint8_t;  // guard_messages.hpp

// What a process passes on to its children as it found it, although it changed it for itself.
// Constructed first in main(); standard input, output and error are open afterwards.
class inherited_state {
 public:
  inherited_state();
  [[nodiscard]] const sigset_t& mask() const noexcept { return mask_; }
  [[nodiscard]] bool ignored(int signal) const;
  // In a child, or before this process becomes another program: as it was.
  void restore() const noexcept;
  // Room for `count` more descriptors; throws user_error when the limit does not allow them.
  void make_room(std::size_t count);

 private:
  sigset_t mask_;
  struct sigaction pipe_action_, child_action_;
  rlimit files_;
};

struct child_request {
  std::string program;                   // a path
  std::vector<std::string> arguments;    // beginning with the program's name
  std::vector<std::string> environment;  // NAME=VALUE
  std::string directory;                 // empty: ours
  int in = -1, out = -1, err = -1;       // -1: ours
  std::vector<int> keep;                 // these stay open under their numbers
  bool own_session = false;              // out of reach of the terminal and its Ctrl-C
};

// A child, as long as we live: never given twice, unlike the kernel's numbers.
using child_id = std::int32_t;

// All processes below this one. They are children of a guard (guard.hpp), so that none of them, nor
// of those that they start, outlives us, however we end. One thread.
class children {
 public:
  using end_callback = std::function<void(node_end)>;

  // Starts the guard. Orphans below it become its own, so that none is lost. Reaps every child of
  // this process, also those that it has not started: the first process of a container gets some.
  children(event_loop& loop, const inherited_state& inherited);
  ~children();  // kills what is left, all of it
  children(const children&) = delete;
  children& operator=(const children&) = delete;

  // Returns when the program runs. The loop calls on_end: of those that end at about the same time
  // first for those that died of a signal, since of two nodes they are the cause.
  // Throws strata::error with the reason of the operating system.
  child_id start(const child_request& what, end_callback on_end);
  void signal(child_id child, int number);
  // Unless it is in our group.
  void signal_outside(child_id child, int number);
  // Whether somebody could continue our group, were it stopped: a shell, say.
  [[nodiscard]] bool overseen() const;
  // Kills and reaps the processes that our children have left behind, for a limited time.
  void kill_orphans();

 private:
  void ask_to_signal(guard_word word, child_id child, int number);
  void on_reports();
  void lose_guard();

  event_loop& loop_;
  std::unique_ptr<signal_events> ends_;
  os::descriptor requests_, reports_;
  pid_t guard_;
  std::string unread_;  // less than a report
  child_id last_ = 0;
  std::map<child_id, end_callback> on_end_;
};

// Our environment without `names`, and then `more` (NAME=VALUE, each replaces an older one).
std::vector<std::string> environment_with(const std::vector<std::string>& more,
                                          const std::vector<std::string>& names);

}  // namespace strata::launcher
