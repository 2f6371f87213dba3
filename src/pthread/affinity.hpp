// SPDX-License-Identifier: Apache-2.0
// The processors that a thread has asked for. Workers are not bound to them, since they run other
// threads, too; the programs that the thread starts are, and the child of its fork(). Those of a
// thread that has asked for none have the process's, whatever its worker is bound to.
#pragma once
#include <sched.h>

#include <array>
#include <cstddef>

namespace strata::detail::posix {

struct record;

inline constexpr std::size_t affinity_bytes_max = 1024;  // as many as Linux can have

// 0, or the kernel's error, such as EINVAL where it has none of them.
int set_affinity(record& r, std::size_t bytes, const cpu_set_t* cpus);
// What threads have that have asked for none. As sched_getaffinity(), by a thread of a runtime.
int read_affinity_of_process(std::size_t bytes, cpu_set_t* to) noexcept;
void inherit_affinity(record& r, record& from) noexcept;
// The kernel knows better: of a thread that has a kernel thread of its own, or by whom r is taken
// anew.
void forget_affinity(record& r) noexcept;
// The same in the child of a vfork() only, where r is the parent's.
void ignore_affinity_here(record& r) noexcept;
// In the child of a fork().
void bind_for_good(record& r) noexcept;

// The calling kernel thread has what r has asked for, or else what it had before it became a
// worker, as long as this lives. Also in the child of a vfork(): takes no memory, and leaves
// nothing behind in what the parent has. Null: nobody.
class own_affinity {
 public:
  explicit own_affinity(record* r) noexcept;
  ~own_affinity();
  own_affinity(const own_affinity&) = delete;
  own_affinity& operator=(const own_affinity&) = delete;

 private:
  bool changed_ = false;
  std::array<std::byte, affinity_bytes_max> before_{};
};

}  // namespace strata::detail::posix
