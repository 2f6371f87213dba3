// SPDX-License-Identifier: Apache-2.0
#include "runtime/report_signal.hpp"

#include <sched.h>
#include <signal.h>

#include <cerrno>

#include "cluster/engine/engine.hpp"
#include "sched/lone_watch.hpp"

namespace strata::report_signal {
namespace {

std::atomic<const void*> owner{nullptr};
struct sigaction before {};

// For the handler.
std::atomic<cluster::engine*> node_to_ask{nullptr};
std::atomic<detail::lone_watch*> watch_to_ask{nullptr};
std::atomic<unsigned> asking{0};

void on_signal(int) {
  const int error_of_program = errno;
  // Say that we ask, then look whom. Partner: give_up().
  asking.fetch_add(1, std::memory_order_seq_cst);
  if (cluster::engine* const node = node_to_ask.load(std::memory_order_seq_cst))
    node->request_report();
  if (detail::lone_watch* const alone = watch_to_ask.load(std::memory_order_seq_cst)) alone->ask();
  asking.fetch_sub(1, std::memory_order_release);
  errno = error_of_program;
}

bool has_it(const void* runtime) noexcept {
  return owner.load(std::memory_order_relaxed) == runtime;
}

}  // namespace

void take(const void* runtime, bool launched) {
  struct sigaction now {};
  sigaction(SIGQUIT, nullptr, &now);
  const bool is_default = (now.sa_flags & SA_SIGINFO) == 0 && now.sa_handler == SIG_DFL;
  if (!is_default && !launched) return;
  // Acquire and release: `before`.
  const void* nobody = nullptr;
  if (!owner.compare_exchange_strong(nobody, runtime, std::memory_order_acquire,
                                     std::memory_order_relaxed))
    return;
  before = now;
  struct sigaction ours {};
  ours.sa_handler = &on_signal;
  ours.sa_flags = SA_RESTART;
  sigfillset(&ours.sa_mask);  // a tick would take us for the program (sched/ticker.hpp)
  sigaction(SIGQUIT, &ours, nullptr);
}

void answer_by(const void* runtime, cluster::engine& node) noexcept {
  if (has_it(runtime)) node_to_ask.store(&node, std::memory_order_seq_cst);
}

void answer_by(const void* runtime, detail::lone_watch& alone) noexcept {
  if (has_it(runtime)) watch_to_ask.store(&alone, std::memory_order_seq_cst);
}

unless_kept::~unless_kept() { give_up(runtime_); }

void give_up(const void* runtime) noexcept {
  if (runtime == nullptr || !has_it(runtime)) return;
  // Unless the program has put one of its own into its place.
  struct sigaction now {};
  sigaction(SIGQUIT, nullptr, &now);
  if ((now.sa_flags & SA_SIGINFO) == 0 && now.sa_handler == &on_signal)
    sigaction(SIGQUIT, &before, nullptr);
  node_to_ask.store(nullptr, std::memory_order_seq_cst);
  watch_to_ask.store(nullptr, std::memory_order_seq_cst);
  // On another thread a handler may have found whom to ask, who goes now. Partner: on_signal().
  while (asking.load(std::memory_order_seq_cst) != 0) sched_yield();
  owner.store(nullptr, std::memory_order_release);
}

}  // namespace strata::report_signal
