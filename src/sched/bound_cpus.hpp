// SPDX-License-Identifier: Apache-2.0
// The CPUs to which the workers of one runtime are bound. How many of all runtimes of the process
// are bound to each is kept, so that small ones have cores of their own and do not all sit on the
// first.
#pragma once
#include <span>
#include <vector>

namespace strata::detail {

class bound_cpus {
 public:
  // None.
  bound_cpus() = default;
  // For `count` workers, as many as `may` at most: all of `may`, or the first to which nobody is
  // bound. None if there are too few of these: a worker that stays on a core that it shares can
  // have work to do beside a core that idles. Throws std::bad_alloc.
  bound_cpus(std::span<const int> may, unsigned count);
  // Gives them back.
  ~bound_cpus();
  bound_cpus(bound_cpus&& other) noexcept = default;
  bound_cpus& operator=(bound_cpus&& other) noexcept {
    cpus_.swap(other.cpus_);
    return *this;
  }

  // One for each worker.
  [[nodiscard]] const std::vector<int>& cpus() const noexcept { return cpus_; }

 private:
  std::vector<int> cpus_;
};

// In the child of a fork: there are no workers.
void forget_bound_cpus();

}  // namespace strata::detail
