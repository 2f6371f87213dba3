// SPDX-License-Identifier: Apache-2.0
// A program's thread-local variables (`__thread`, `thread_local`) belong to one of its threads, but
// the C library keeps them for the OS thread. Of programs that are run as they are, `strata
// pthread`, whoever changes stacks takes them along; those that are compiled for us are told not to
// rely on them. Source for where they lie: U. Drepper, "ELF Handling For Thread-Local Storage",
// version 0.20, sections 2 and 3.
#pragma once
#include <cstddef>

namespace strata::detail {

#ifdef STRATA_CARRIES_PROGRAM_LOCALS
inline constexpr bool carries_program_locals = true;
#else
inline constexpr bool carries_program_locals = false;
#endif

// The rest is there only if so: src/pthread/preload/program_locals.cpp.

// Looks what there is; before the program's main(), once.
void find_program_locals();
// What has been loaded since may have some, too: those are taken along from now on.
void find_later_program_locals() noexcept;
// As many are kept on the stack of who waits; more elsewhere.
inline constexpr std::size_t program_locals_on_stack_max = 4096;
// As a thread finds them that begins.
void reset_program_locals() noexcept;

struct program_local;  // of one object

// Those that are known when it is made: who waits may find more when it comes back.
class program_locals {
 public:
  program_locals() noexcept;
  // 0: there are none, and nothing has to be done.
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  // Those of the calling OS thread, to so many bytes.
  void save(std::byte* to) const noexcept;
  // What has become known since is as a thread finds it that begins.
  void load(const std::byte* from) const noexcept;

 private:
  const program_local* last_;
  std::size_t bytes_;
};

}  // namespace strata::detail
