// SPDX-License-Identifier: Apache-2.0
#include "os/quota.hpp"

#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>

namespace strata::os {

namespace fs = std::filesystem;

namespace {

std::string read_text(const fs::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::optional<double> ratio(double quota_us, double period_us) {
  if (!(quota_us > 0) || !(period_us > 0)) return std::nullopt;
  return quota_us / period_us;
}

// cpu.max holds "max 100000" or "150000 100000": quota and period in microseconds.
std::optional<double> quota_v2(const fs::path& folder) {
  std::istringstream in(read_text(folder / "cpu.max"));
  double quota_us = 0;
  double period_us = 100'000;
  if (!(in >> quota_us)) return std::nullopt;  // "max"
  in >> period_us;
  return ratio(quota_us, period_us);
}

// cpu.cfs_quota_us holds -1 when there is no limit.
std::optional<double> quota_v1(const fs::path& folder) {
  std::istringstream quota(read_text(folder / "cpu.cfs_quota_us"));
  std::istringstream period(read_text(folder / "cpu.cfs_period_us"));
  double quota_us = 0;
  double period_us = 0;
  if (!(quota >> quota_us) || !(period >> period_us)) return std::nullopt;
  return ratio(quota_us, period_us);
}

// A limit anywhere above counts too. In a container the path is often that of the host, which does
// not exist below our mount; the walk then finds the container's own limit at the root of the
// mount.
template <class Read>
void walk_up(const fs::path& mount, const std::string& path, const char* file, Read read,
             cpu_quota& best) {
  fs::path below = fs::path("/" + path).lexically_normal().relative_path();
  while (true) {
    const fs::path folder = mount / below;
    if (const auto cores = read(folder); cores && *cores < best.cores) {
      best = {*cores, (folder / file).lexically_normal()};
    }
    if (below.empty()) return;
    below = below.parent_path();
  }
}

bool lists(const std::string& controllers, const std::string& wanted) {
  std::istringstream in(controllers);
  for (std::string name; std::getline(in, name, ',');) {
    if (name == wanted) return true;
  }
  return false;
}

}  // namespace

cpu_quota read_cpu_quota(const std::string& proc_self_cgroup, const fs::path& mount) {
  cpu_quota best;
  std::istringstream lines(proc_self_cgroup);
  // Each line is "number:controllers:path"; v2 has number 0 and no controllers.
  for (std::string line; std::getline(lines, line);) {
    const auto first = line.find(':');
    const auto second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (controllers.empty()) {
      walk_up(mount, path, "cpu.max", quota_v2, best);
      walk_up(mount / "unified", path, "cpu.max", quota_v2, best);  // both versions at once
    } else if (lists(controllers, "cpu")) {
      for (const char* name : {"cpu", "cpu,cpuacct", "cpuacct,cpu"}) {
        walk_up(mount / name, path, "cpu.cfs_quota_us", quota_v1, best);
      }
    }
  }
  return best;
}

cpu_quota read_cpu_quota() {
  return read_cpu_quota(read_text("/proc/self/cgroup"), "/sys/fs/cgroup");
}

}  // namespace strata::os
