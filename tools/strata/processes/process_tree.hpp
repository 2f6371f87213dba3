// SPDX-License-Identifier: Apache-2.0
// What is below a process: ending all of it, and who else has an eye on it.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace strata::launcher {

// Orphans among the descendants of this process become its children from now on, as far as none in
// between has asked for the same.
void adopt_orphans();

// Kills and reaps the children of this process but those that are spared, then their children,
// which have become its own, and so on until none is left or the time (os::now_ns()) has come.
// Leaves processes alone that it may not signal, because they run as another user. Blocks until
// those that it has killed are gone, and no longer than until then. One thread.
void kill_children(const std::function<bool(pid_t)>& is_spared, std::int64_t until_ns);

// A process of a group whose parent is in another group of the same session: a shell, say, that
// could continue the group when it is stopped.
struct overseen_process {
  pid_t pid = 0, parent = 0;
  friend bool operator==(const overseen_process&, const overseen_process&) = default;
};
// All of a group, but for the children of its guard, which continues none.
std::vector<overseen_process> overseen_in(pid_t group, pid_t guard);

}  // namespace strata::launcher
