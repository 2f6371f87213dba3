// SPDX-License-Identifier: Apache-2.0
// Binding concerns an OS thread of the runtime alone. Other threads and programs inherit the CPUs
// of the OS thread that makes them, which knows here what it had itself before it was bound.
#pragma once
#include <sched.h>

#include <array>
#include <cstddef>

namespace strata::os {

/// As many CPUs as Linux can have, as the kernel has them.
using cpu_bytes = std::array<std::byte, 1024>;

inline cpu_set_t* as_cpu_set(cpu_bytes& b) noexcept {
  return reinterpret_cast<cpu_set_t*>(b.data());
}
inline const cpu_set_t* as_cpu_set(const cpu_bytes& b) noexcept {
  return reinterpret_cast<const cpu_set_t*>(b.data());
}

/// By who is about to bind the calling OS thread: what it has now is what it had before, if it has
/// not been bound yet.
void keep_cpus_before_binding() noexcept;

/// What the calling OS thread had before it was bound; null: it has not been. Also in the child of
/// a vfork(), which has what its maker has.
[[nodiscard]] const cpu_bytes* cpus_before_binding() noexcept;

/// The calling OS thread, which is no worker any more, has them back, or others: they are its own.
void forget_binding() noexcept;

/// While it exists the calling OS thread has the CPUs that it had before it was bound, and so have
/// threads from their beginning that it makes. errno stays as it is.
class unbound {
 public:
  unbound() noexcept;
  ~unbound();
  unbound(const unbound&) = delete;
  unbound& operator=(const unbound&) = delete;

 private:
  bool changed_ = false;
  cpu_bytes bound_;
};

}  // namespace strata::os
