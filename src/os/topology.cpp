// SPDX-License-Identifier: Apache-2.0
#include "os/topology.hpp"

#include <hwloc.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "base/shortened.hpp"
#include "strata/error.hpp"

namespace strata::os {

struct topology::loader {
  struct destroy {
    void operator()(hwloc_topology_t handle) const noexcept { hwloc_topology_destroy(handle); }
  };
  using owner = std::unique_ptr<hwloc_topology, destroy>;

  // Only what `location` needs: discovering PCI devices, GPUs and disks takes far longer than the
  // rest.
  static owner init() {
    hwloc_topology_t handle = nullptr;
    if (hwloc_topology_init(&handle) != 0) return nullptr;
    hwloc_topology_set_all_types_filter(handle, HWLOC_TYPE_FILTER_KEEP_NONE);
    for (const auto type :
         {HWLOC_OBJ_CORE, HWLOC_OBJ_L2CACHE, HWLOC_OBJ_L3CACHE, HWLOC_OBJ_PACKAGE}) {
      hwloc_topology_set_type_filter(handle, type, HWLOC_TYPE_FILTER_KEEP_ALL);
    }
    // NUMA nodes smaller than a package hang on groups.
    hwloc_topology_set_type_filter(handle, HWLOC_OBJ_GROUP, HWLOC_TYPE_FILTER_KEEP_STRUCTURE);
#if HWLOC_API_VERSION >= 0x20100
    // Where /sys is not mounted hwloc would say on stderr that it is not, and ask the processor.
    if (::access("/sys/devices/system/cpu", F_OK) != 0)
      hwloc_topology_set_components(handle, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "linux");
#endif
    return owner(handle);
  }

  static int ancestor(hwloc_topology_t handle, hwloc_obj_type_t type, hwloc_obj_t unit) {
    const hwloc_obj_t found = hwloc_get_ancestor_obj_by_type(handle, type, unit);
    return found == nullptr ? -1 : static_cast<int>(found->logical_index);
  }

  static int numa_node(hwloc_topology_t handle, hwloc_obj_t unit) {
    for (hwloc_obj_t node = nullptr;
         (node = hwloc_get_next_obj_by_type(handle, HWLOC_OBJ_NUMANODE, node));) {
      if (hwloc_bitmap_isset(node->cpuset, unit->os_index))
        return static_cast<int>(node->logical_index);
    }
    return -1;
  }

  static topology read(hwloc_topology_t handle) {
    topology result;
    for (hwloc_obj_t unit = nullptr;
         (unit = hwloc_get_next_obj_by_type(handle, HWLOC_OBJ_PU, unit));) {
      const std::size_t cpu = unit->os_index;
      if (result.by_cpu_.size() <= cpu) result.by_cpu_.resize(cpu + 1);
      location& where = result.by_cpu_[cpu];
      where.core = ancestor(handle, HWLOC_OBJ_CORE, unit);
      // A processor without cores in its description (some virtual machines): every CPU is one.
      if (where.core < 0) where.core = static_cast<int>(unit->logical_index);
      where.l2 = ancestor(handle, HWLOC_OBJ_L2CACHE, unit);
      where.l3 = ancestor(handle, HWLOC_OBJ_L3CACHE, unit);
      where.package = ancestor(handle, HWLOC_OBJ_PACKAGE, unit);
      where.numa = numa_node(handle, unit);
      result.in_order_.push_back(static_cast<int>(cpu));
    }
    return result;
  }
};

const topology& topology::machine() {
  static const topology here = [] {
    const auto handle = loader::init();
    if (!handle || hwloc_topology_load(handle.get()) != 0) return topology();
    return loader::read(handle.get());
  }();
  return here;
}

topology topology::synthetic(const std::string& description) {
  const auto handle = loader::init();
  if (!handle || hwloc_topology_set_synthetic(handle.get(), description.c_str()) != 0 ||
      hwloc_topology_load(handle.get()) != 0) {
    throw error("hwloc does not understand the synthetic machine " + in_quotes(description));
  }
  return loader::read(handle.get());
}

const topology::location* topology::find(int cpu) const noexcept {
  if (cpu < 0 || static_cast<std::size_t>(cpu) >= by_cpu_.size()) return nullptr;
  const location& where = by_cpu_[static_cast<std::size_t>(cpu)];
  return where.core < 0 ? nullptr : &where;
}

distance topology::between(int a, int b) const noexcept {
  if (a == b) return distance::core;
  const location* first = find(a);
  const location* second = find(b);
  if (first == nullptr || second == nullptr) return distance::machine;
  const auto shared = [&](int location::*level) {
    return first->*level >= 0 && first->*level == second->*level;
  };
  if (shared(&location::core)) return distance::core;
  if (shared(&location::l2)) return distance::l2;
  if (shared(&location::l3)) return distance::l3;
  // A machine that is one NUMA node says nothing about nearness inside a package or across
  // packages.
  if (shared(&location::numa) && shared(&location::package)) return distance::numa;
  if (shared(&location::package)) return distance::package;
  return distance::machine;
}

std::vector<unsigned> topology::steal_order(std::span<const int> cpus, unsigned self) const {
  const auto count = static_cast<unsigned>(cpus.size());
  std::vector<unsigned> order;
  order.reserve(count);
  for (unsigned step = 1; step < count; ++step) order.push_back((self + step) % count);
  std::stable_sort(order.begin(), order.end(), [&](unsigned x, unsigned y) {
    return between(cpus[self], cpus[x]) < between(cpus[self], cpus[y]);
  });
  return order;
}

std::vector<int> topology::place(std::span<const int> allowed, unsigned count) const {
  const auto may = [&](int cpu) { return std::binary_search(allowed.begin(), allowed.end(), cpu); };
  std::vector<int> first_threads;
  std::vector<int> other_threads;
  std::vector<int> unknown(allowed.begin(), allowed.end());
  int previous_core = -1;
  for (const int cpu : in_order_) {
    if (!may(cpu)) continue;
    const int core = find(cpu)->core;
    (core == previous_core ? other_threads : first_threads).push_back(cpu);
    previous_core = core;
    std::erase(unknown, cpu);
  }
  std::vector<int> all = std::move(first_threads);
  all.insert(all.end(), other_threads.begin(), other_threads.end());
  all.insert(all.end(), unknown.begin(), unknown.end());
  std::vector<int> placed;
  for (unsigned i = 0; i < count && !all.empty(); ++i) placed.push_back(all[i % all.size()]);
  return placed;
}

}  // namespace strata::os
