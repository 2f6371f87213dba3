// SPDX-License-Identifier: Apache-2.0
#include <semaphore.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "os/own_thread.hpp"
#include "sched/registry.hpp"
#include "sched/scheduler.hpp"
#include "strata/dump_threads.hpp"
#include "threads/after_fork.hpp"
#include "threads/debugger.hpp"
#include "threads/dump.hpp"

namespace strata::detail {
namespace {

// One for the process, as signals are; and another one for the child of a fork. Never destroyed:
// the handler may come at any time.
struct watcher {
  std::mutex mutex;
  unsigned users = 0;
  int number = 0;
  std::array<struct sigaction, NSIG> before{};  // to which ours passes a signal on
  sem_t asked;
  std::atomic<bool> ending{false};
  std::thread thread;
  watcher* const forgotten;  // for those who look for leaks

  explicit watcher(watcher* parents = nullptr) : forgotten(parents) {}
};
std::atomic<watcher*>& current_watcher() {
  static std::atomic<watcher*> one{new watcher};
  return one;
}
watcher& only() { return *current_watcher().load(std::memory_order_acquire); }

// Which signal is being passed on here, by what the kernel has kept of whom it interrupted, and
// from which frame: who has kept our handler may pass it on to us in turn, which is deeper. Of a
// handler that was left by siglongjmp() something may still stand here, and the next one be as
// deep.
struct passing {
  const void* machine;
  std::uintptr_t frame;
};
thread_local constinit passing passed_on __attribute__((tls_model("initial-exec"))){};

void on_signal(int number, siginfo_t* info, void* machine) {
  const auto frame = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  if (passed_on.machine == machine && frame < passed_on.frame) return;
  watcher& w = only();
  sem_post(&w.asked);
  const struct sigaction& before = w.before[static_cast<std::size_t>(number)];
  const passing outer = std::exchange(passed_on, {machine, frame});
  if ((before.sa_flags & SA_SIGINFO) != 0) {
    if (before.sa_sigaction != nullptr) before.sa_sigaction(number, info, machine);
  } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
    before.sa_handler(number);
  }
  passed_on = outer;
}

bool is_ours(const struct sigaction& s) noexcept {
  return (s.sa_flags & SA_SIGINFO) != 0 && s.sa_sigaction == &on_signal;
}

void answer() noexcept {
  try {
    std::string text;
    for_each_runtime(
        [&](scheduler& s) { text += "strata: asked by a signal\n" + s.describe_waits(); });
    text += threads_text();
    std::fputs(text.c_str(), stderr);
  } catch (const std::exception&) {
    constexpr std::string_view refused = "strata: no memory for what was asked for by a signal\n";
    (void)!::write(STDERR_FILENO, refused.data(), refused.size());
  }
}

void watch(watcher& w) {
  const os::own_thread here("strata-dump");
  for (;;) {
    if (sem_wait(&w.asked) != 0) continue;  // a signal of the program
    if (w.ending.load(std::memory_order_acquire)) return;
    answer();
  }
}

int number_of(std::string_view name) noexcept {
  if (name == "QUIT") return SIGQUIT;
  if (name == "USR1") return SIGUSR1;
  if (name == "USR2") return SIGUSR2;
  if (name == "HUP") return SIGHUP;
  return 0;
}

// Unless the program has put one of its own into its place.
void give_handler_back(const watcher& w) noexcept {
  struct sigaction now {};
  if (sigaction(w.number, nullptr, &now) != 0) return;
  if (is_ours(now)) sigaction(w.number, &w.before[static_cast<std::size_t>(w.number)], nullptr);
}

// Throws std::system_error, and nothing has happened.
void begin(watcher& w, int number) {
  sem_init(&w.asked, 0, 0);
  w.ending.store(false, std::memory_order_relaxed);
  w.thread = std::thread([&w] { watch(w); });
  w.number = number;
  struct sigaction now {};
  sigaction(number, nullptr, &now);
  // Ours already where the program has kept it from an earlier runtime, and has put it back: who
  // was there before that one still is.
  if (!is_ours(now)) w.before[static_cast<std::size_t>(number)] = now;
  struct sigaction ours;
  std::memset(&ours, 0, sizeof ours);
  ours.sa_sigaction = &on_signal;
  ours.sa_flags = SA_SIGINFO | SA_RESTART;
  sigfillset(&ours.sa_mask);  // a tick would take us for the program (sched/ticker.hpp)
  sigaction(number, &ours, nullptr);
}

}  // namespace

void forget_dump_signal() {
  // Also one without users: somebody may have been in its lock.
  watcher& parents = only();
  give_handler_back(parents);
  current_watcher().store(new watcher(&parents), std::memory_order_release);
}

dump_signal::dump_signal(std::string_view name) {
  // Every program with a runtime comes here: so what debuggers look for is linked into it.
  asm volatile("" : : "r"(&strata_debugger_layout));
  const int number = number_of(name);
  if (number == 0) return;
  watcher& w = only();
  const std::lock_guard lock(w.mutex);
  if (w.users == 0) begin(w, number);  // the first one's choice holds
  ++w.users;
  on_ = true;
}

dump_signal::~dump_signal() {
  if (!on_) return;
  watcher& w = only();
  const std::lock_guard lock(w.mutex);
  if (--w.users != 0) return;
  give_handler_back(w);
  w.ending.store(true, std::memory_order_release);
  sem_post(&w.asked);
  w.thread.join();
}

}  // namespace strata::detail
