// SPDX-License-Identifier: Apache-2.0
// Who waits for descriptors, and for what. The one who sleeps for all of them knows a wait by its
// number only: a wait that has ended meanwhile is not found, so nothing dangles.
#include "threads/reactor.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <exception>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "os/no_signals.hpp"
#include "sched/stall.hpp"
#include "strata/detail/worker.hpp"
#include "threads/after_fork.hpp"
#include "threads/turns.hpp"

namespace strata::detail {
namespace {

struct io_wait {
  int fd;
  std::uint32_t events;
  int error = 0;
  int watched = -1;  // fd, or a duplicate while somebody else waits for fd too
  std::uint64_t number = 0;
  bool watched_once = false;  // guarded by the reactor's mutex
};

class reactor {
 public:
  // Behind a fork: the one that the parent has.
  explicit reactor(reactor* parents = nullptr)
      : epoll_(epoll_create1(EPOLL_CLOEXEC)), forgotten_(parents) {}

  // Queued already: may be woken before this returns, and by its deadline before this begins.
  void watch(io_wait& w) {
    const std::lock_guard lock(mutex_);
    w.watched_once = true;
    if (epoll_ < 0) return fail(w, EMFILE);
    if (!begin()) return fail(w, EAGAIN);
    w.number = ++numbers_;
    epoll_event e{};
    e.events = w.events | EPOLLONESHOT;
    e.data.u64 = w.number;
    waits_.emplace(w.number, &w);
    w.watched = w.fd;
    if (epoll_ctl(epoll_, EPOLL_CTL_ADD, w.watched, &e) == 0) return;
    if (errno == EEXIST) {
      w.watched = fcntl(w.fd, F_DUPFD_CLOEXEC, 3);
      if (w.watched >= 0 && epoll_ctl(epoll_, EPOLL_CTL_ADD, w.watched, &e) == 0) return;
    }
    // EPERM: a regular file, which is always ready.
    fail(w, errno == EPERM ? 0 : errno);
  }

  // Once for each wait, as watch(). Afterwards nobody knows w.
  void forget(io_wait& w) {
    std::unique_lock lock(mutex_);
    // The worker that has given up our stack is about to call watch().
    while (!w.watched_once) {
      lock.unlock();
      std::this_thread::yield();
      lock.lock();
    }
    if (w.number == 0) return;
    waits_.erase(w.number);
    if (w.watched < 0) return;
    epoll_ctl(epoll_, EPOLL_CTL_DEL, w.watched, nullptr);
    if (w.watched != w.fd) close(w.watched);
  }

 private:
  // True once it has its thread. Here nothing may be thrown: the caller's stack is given up.
  bool begin() {
    if (running_ || epoll_ < 0) return running_;
    const os::no_signals there;
    try {
      std::thread([this] { run(); }).detach();
      running_ = true;
    } catch (const std::exception&) {  // refused; there may be room for it later
    }
    return running_;
  }

  void fail(io_wait& w, int error) {
    w.error = error;
    if (w.watched != w.fd && w.watched >= 0) close(w.watched);
    w.watched = -1;
    unpark(&w, 1);
  }

  void run() {
    pthread_setname_np(pthread_self(), "strata-io");
    std::array<epoll_event, 64> happened;
    for (;;) {
      const int n = epoll_wait(epoll_, happened.data(), happened.size(), -1);
      const std::lock_guard lock(mutex_);
      for (int i = 0; i < n; ++i) {
        // A copy: the kernel's structure is packed.
        const std::uint64_t which = happened[static_cast<std::size_t>(i)].data.u64;
        const auto found = waits_.find(which);
        if (found != waits_.end()) unpark(found->second, 1);
      }
    }
  }

  const int epoll_;
  [[maybe_unused]] reactor* const forgotten_;
  bool running_ = false;
  std::mutex mutex_;
  std::uint64_t numbers_ = 0;
  std::unordered_map<std::uint64_t, io_wait*> waits_;
};

// Never destroyed: its thread may be in it when the process ends.
std::atomic<reactor*>& current_reactor() {
  static std::atomic<reactor*> one{new reactor};
  return one;
}
reactor& the_reactor() { return *current_reactor().load(std::memory_order_acquire); }

void watch(void* w) { the_reactor().watch(*static_cast<io_wait*>(w)); }

void forget(io_wait& w) {
  const uninterrupted guard;
  the_reactor().forget(w);
}

}  // namespace

unparked wait_for_events(event_wait& how) {
  // The bits of poll and epoll are the same on Linux.
  io_wait w{how.fd, static_cast<std::uint16_t>(how.events)};
  unparked why{};
  try {
    why = park({.what = wait_for_descriptor,
                .address = &w,
                .then = &watch,
                .then_argument = &w,
                .deadline_ns = how.deadline_ns,
                .interruptible = how.interruptible});
  } catch (const std::exception&) {
    throw;  // it could not wait, and nobody knows w
  } catch (...) {
    forget(w);  // the thread is left here: see thread_exit.hpp
    throw;
  }
  forget(w);
  how.error = w.error;
  return why;
}

void forget_descriptor_waits() {
  // The old one's thread is not here, and its epoll is the parent's.
  current_reactor().store(new reactor(&the_reactor()), std::memory_order_release);
  descriptor_turn::forget_all();
}

}  // namespace strata::detail
