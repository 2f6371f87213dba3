// SPDX-License-Identifier: Apache-2.0
// Starting a process that does not outlive us.
#pragma once
#include <sys/resource.h>
#include <sys/types.h>

#include <csignal>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tools/strata/host_nodes.hpp"

namespace strata::launch {

// What a process passes on to its children as it found it, although it changed it for itself.
// Constructed first in main(); standard input, output and error are open afterwards.
class inherited_state {
 public:
  inherited_state();
  [[nodiscard]] const sigset_t& mask() const noexcept { return mask_; }
  [[nodiscard]] bool ignored(int signal) const;
  // In a child: as it was.
  void restore() const noexcept;
  // Room for `count` more descriptors; throws user_error when the limit does not allow them.
  void make_room(std::size_t count);

 private:
  sigset_t mask_;
  struct sigaction pipe_action_;
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

// All processes below this one. One thread.
class children {
 public:
  using end_callback = std::function<void(node_end)>;

  // From now on orphans of our children become ours, so that none is lost.
  explicit children(const inherited_state& inherited);
  ~children();  // kills what is left, all of it
  children(const children&) = delete;
  children& operator=(const children&) = delete;

  // Returns when the program runs. The child is killed when this thread ends, however it does.
  // Throws strata::error with the reason of the operating system.
  pid_t start(const child_request& what, end_callback on_end);
  void signal(pid_t child, int number);
  // After SIGCHLD: tells of those that have ended, those that died of a signal first: of two nodes
  // that ended at about the same time they are the cause.
  void reap();
  // Kills and reaps the processes that our children have left behind, for a limited time.
  void kill_orphans();

 private:
  const inherited_state& inherited_;
  std::map<pid_t, end_callback> on_end_;
};

// Our environment without `names`, and then `more` (NAME=VALUE, each replaces an older one).
std::vector<std::string> environment_with(const std::vector<std::string>& more,
                                          const std::vector<std::string>& names);

}  // namespace strata::launch
