// SPDX-License-Identifier: Apache-2.0
// SIGQUIT asks who waits for what. A process has it once, so the first runtime that there is
// answers it, for as long as it is there.
#pragma once

namespace strata::cluster {
class engine;
}
namespace strata::detail {
class lone_watch;
}

namespace strata::report_signal {

// From now on the signal no longer ends the process, and nobody answers it yet. Nothing happens
// where another runtime has it, or the program does something with it itself; `launched`: also
// then, because the launcher's user asks.
void take(const void* runtime, bool launched);
// Who answers; nothing happens if that runtime does not have it.
void answer_by(const void* runtime, cluster::engine& node) noexcept;
void answer_by(const void* runtime, detail::lone_watch& alone) noexcept;
// The signal does again what it did before; nobody is asked any more. May be called again.
void give_up(const void* runtime) noexcept;

// While the runtime is made: gives up unless that succeeds.
class unless_kept {
 public:
  explicit unless_kept(const void* runtime) noexcept : runtime_(runtime) {}
  ~unless_kept();
  unless_kept(const unless_kept&) = delete;
  unless_kept& operator=(const unless_kept&) = delete;
  void keep() noexcept { runtime_ = nullptr; }

 private:
  const void* runtime_;
};

}  // namespace strata::report_signal
