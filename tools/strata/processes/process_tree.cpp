// SPDX-License-Identifier: Apache-2.0
#include "tools/strata/processes/process_tree.hpp"

#include <dirent.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <ctime>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "os/clock.hpp"
#include "os/process_folder.hpp"

namespace strata::launcher {

namespace {

struct process_entry {
  pid_t pid = 0, parent = 0, group = 0, session = 0;
};

// Zeros when it is gone. Its name may hold anything, ends of lines too: what we look for follows
// its last bracket.
process_entry look_at(const std::string& pid) {
  std::ifstream in("/proc/" + pid + "/stat");
  std::string text;
  std::getline(in, text, '\0');
  const auto name_end = text.rfind(") ");
  if (name_end == std::string::npos) return {};
  std::istringstream rest(text.substr(name_end + 2));
  process_entry p;
  char state = 0;
  if (!(rest >> state >> p.parent >> p.group >> p.session)) return {};
  p.pid = static_cast<pid_t>(std::stol(pid));
  return p;
}

// None where nobody tells.
std::vector<process_entry> all_processes() {
  std::vector<process_entry> result;
  if (!os::has_proc_our_numbers()) return result;
  const std::unique_ptr<DIR, int (*)(DIR*)> processes(::opendir("/proc"), &::closedir);
  if (processes == nullptr) return result;
  while (const dirent* entry = ::readdir(processes.get())) {
    const std::string name = entry->d_name;
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    if (const process_entry p = look_at(name); p.pid != 0) result.push_back(p);
  }
  return result;
}

// That of a process that is made now; -1: there can be none.
pid_t latest_number() {
  const pid_t latest = ::fork();
  if (latest == 0) ::_exit(0);
  if (latest > 0) ::waitpid(latest, nullptr, 0);
  return latest;
}

using predicate = std::function<bool(pid_t)>;

// The kernel knows of any number whether a child of ours has it. It gives numbers out in turn, so
// those of our descendants lie between ours and the latest one, unless it has gone round since:
// then some are found, near to each other. Who asks again finds the others.
std::vector<pid_t> children_by_number(const predicate& is_spared) {
  std::vector<pid_t> result;
  const auto look = [&](pid_t first, pid_t last) {
    for (pid_t pid = first; pid <= last; ++pid) {
      siginfo_t none;
      if (::waitid(P_PID, static_cast<id_t>(pid), &none, WEXITED | WNOHANG | WNOWAIT) == 0 &&
          !is_spared(pid))
        result.push_back(pid);
    }
  };
  const pid_t own = ::getpid();
  if (const pid_t latest = latest_number(); latest > own) look(own + 1, latest);
  constexpr pid_t highest = 1 << 22, some = 1 << 15;
  for (pid_t first = 1; result.empty() && first < highest; first += some)
    look(first, first + some - 1);
  return result;
}

std::vector<pid_t> own_children_but(const predicate& is_spared) {
  const std::vector<process_entry> all = all_processes();
  if (all.empty()) return children_by_number(is_spared);
  std::vector<pid_t> result;
  for (const process_entry& p : all) {
    if (p.parent == ::getpid() && !is_spared(p.pid)) result.push_back(p.pid);
  }
  return result;
}

bool has_children() {
  siginfo_t none;
  return ::waitid(P_ALL, 0, &none, WEXITED | WNOHANG | WNOWAIT) == 0;
}

bool is_gone(pid_t child) { return ::waitpid(child, nullptr, WNOHANG) != 0; }

// Until all of these are gone, or the time has come: what the kernel holds on to, or another
// process traces, ends later than it is killed. No SIGCHLD is waited for: they are others' to read.
void reap(std::vector<pid_t> killed, std::int64_t until_ns) {
  constexpr std::int64_t look_ns_max = 100'000'000;
  for (std::int64_t look_ns = 100'000;; look_ns = std::min(2 * look_ns, look_ns_max)) {
    std::erase_if(killed, is_gone);
    const std::int64_t left_ns = until_ns - os::now_ns();
    if (killed.empty() || left_ns <= 0) return;
    const timespec pause{0, static_cast<long>(std::min(look_ns, left_ns))};
    ::nanosleep(&pause, nullptr);
  }
}

}  // namespace

void adopt_orphans() { ::prctl(PR_SET_CHILD_SUBREAPER, 1); }

void kill_children(const std::function<bool(pid_t)>& is_spared, std::int64_t until_ns) {
  // Without any child, which is the rule, there is nothing to look for.
  while (has_children()) {
    bool any = false;
    std::vector<pid_t> killed;
    for (const pid_t child : own_children_but(is_spared)) {
      if (::kill(child, SIGKILL) == 0) {
        killed.push_back(child);
      } else if (is_gone(child)) {
        any = true;
      }
    }
    any = any || !killed.empty();
    reap(std::move(killed), until_ns);
    // What was below those that have ended is below us now: look again.
    if (!any || os::now_ns() >= until_ns) return;
  }
}

std::vector<overseen_process> overseen_in(pid_t group, pid_t guard) {
  const std::vector<process_entry> all = all_processes();
  std::vector<overseen_process> result;
  for (const process_entry& p : all) {
    if (p.group != group || p.parent == guard) continue;
    if (std::any_of(all.begin(), all.end(), [&](const process_entry& parent) {
          return parent.pid == p.parent && parent.group != group && parent.session == p.session;
        }))
      result.push_back({p.pid, p.parent});
  }
  return result;
}

}  // namespace strata::launcher
