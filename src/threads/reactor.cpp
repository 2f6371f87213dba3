// SPDX-License-Identifier: Apache-2.0
// Who waits for descriptors, and for what. The one who sleeps for all of them knows a wait by its
// number only: a wait that has ended meanwhile is not found, so nothing dangles.
#include "threads/reactor.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <thread>
#include <unordered_map>

#include "os/no_signals.hpp"
#include "os/own_numbers.hpp"
#include "os/own_thread.hpp"
#include "sched/suspended.hpp"
#include "sched/waiting_stacks.hpp"
#include "strata/detail/worker.hpp"
#include "threads/after_fork.hpp"
#include "threads/turns.hpp"

namespace strata::detail {
namespace {

class reactor;

struct io_wait {
  int fd;
  std::uint32_t events;
  reactor* by;  // not the one that there is any more, behind a fork in a handler
  const scheduler* home;
  int error = 0;
  bool is_watchable = true;
  int watched = -1;  // fd, or a duplicate while somebody else waits for fd too
  std::uint64_t number = 0;
  bool watched_once = false;  // guarded by the reactor's mutex
};

class reactor {
 public:
  // Queued already: may be woken before this returns, and by its deadline before this begins.
  void watch(io_wait& w) {
    const std::lock_guard lock(mutex_);
    w.watched_once = true;
    if (const int error = begin()) return fail(w, error);
    if (const int error = note(w)) return fail(w, error);
    if (add_or_copy(w)) return note_whose(w);
    if (w.watched >= 0 && has_lost_set(errno)) return begin_anew();  // with w
    refuse(w, errno);
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
    stop_watching(w);
  }

  // What those wait for who are suspended when their runtime has ended.
  void forget_all_of(const scheduler& s) {
    const std::lock_guard lock(mutex_);
    std::erase_if(waits_, [&](const auto& one) {
      if (one.second->home != &s) return false;
      stop_watching(*one.second);
      return true;
    });
  }

  // In the child of a fork. Its thread is not here, its lock may be held for ever, and its set and
  // its copies, which are closed, are the parent's. `before` was forgotten before it: those who
  // look for leaks find both.
  void leave_to_parent(reactor* before) noexcept { forgotten_ = before; }

 private:
  // 0 once it has its thread. Here nothing may be thrown: the caller's stack is given up.
  int begin() {
    if (running_) return 0;
    if (epoll_ < 0) {
      const int fresh = epoll_create1(EPOLL_CLOEXEC);
      if (fresh < 0) return EMFILE;
      epoll_ = os::move_out_of_the_way(fresh);
    }
    const os::no_signals there;
    try {
      std::thread([this, set = epoll_, which = sets_] { run(set, which); }).detach();
      running_ = true;
    } catch (const std::exception&) {  // refused; there may be room for it later
    }
    return running_ ? 0 : EAGAIN;
  }

  // Whether the kernel watches `fd` for w.
  bool add(io_wait& w, int fd) noexcept {
    epoll_event e{};
    e.events = w.events | EPOLLONESHOT;
    e.data.u64 = w.number;
    w.watched = fd;
    return epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &e) == 0;
  }

  bool add_or_copy(io_wait& w) noexcept {
    if (add(w, w.fd)) return true;
    if (errno != EEXIST) return false;
    w.watched = os::copy_out_of_the_way(w.fd);
    if (w.watched < 0) w.watched = os::copy_out_of_the_way(w.fd, 3);
    return w.watched >= 0 && add(w, w.watched);
  }
  // In another set. A copy that cannot be watched, but for want of memory, is the program's by now.
  bool add_again(io_wait& w) noexcept {
    if (w.watched == w.fd) return add_or_copy(w);
    if (add(w, w.watched)) return true;
    if (errno == ENOMEM || errno == ENOSPC || has_lost_set(errno)) return false;
    os::forget_own_number(w.watched);
    return add_or_copy(w);
  }

  // Whether a wait could not be added, with this error, because the program has closed what it did
  // not open, and maybe opened something in its place.
  bool has_lost_set(int error) {
    if (error != EBADF && error != EINVAL) return false;
    epoll_event e{};
    const int n = epoll_wait(epoll_, &e, 1, 0);
    const bool is_gone = n < 0 && errno != EINTR;
    if (n > 0) tell(e);
    errno = error;
    return is_gone;
  }

  // Another set, with a thread of its own, and with all waits. Who sleeps in the former one, which
  // is there as long as that lasts, tells what it still hears of, and ends: see run().
  void begin_anew() {
    int error = 0;
    do {
      leave_set();
      forget_lost_copies();
      error = begin();
    } while (!watch_all_again(error));
  }

  void leave_set() noexcept {
    os::forget_own_number(epoll_);
    epoll_ = -1;
    running_ = false;
    ++sets_;
  }

  // Before anything else gets their numbers.
  void forget_lost_copies() noexcept {
    for (const auto& one : waits_) {
      io_wait& w = *one.second;
      if (w.watched < 0 || w.watched == w.fd || fcntl(w.watched, F_GETFD) >= 0) continue;
      os::forget_own_number(w.watched);
      w.watched = w.fd;
    }
  }

  // `error`: they cannot be watched any more. False: this set is lost as well.
  bool watch_all_again(int error) {
    whose_.clear();
    for (const auto& one : waits_) {
      io_wait& w = *one.second;
      if (w.watched < 0) continue;
      if (error != 0) {
        fail(w, error);
      } else if (add_again(w)) {
        note_whose(w);
      } else if (w.watched >= 0 && has_lost_set(errno)) {
        return false;
      } else {
        refuse(w, errno);
      }
    }
    return true;
  }

  // Nor here.
  int note(io_wait& w) {
    try {
      waits_.emplace(numbers_ + 1, &w);
    } catch (const std::bad_alloc&) {
      return ENOMEM;
    }
    w.number = ++numbers_;
    return 0;
  }

  // Likewise. Who was there before, if anybody, watched another file, which has been closed.
  void note_whose(io_wait& w) {
    try {
      whose_[w.watched] = w.number;
    } catch (const std::bad_alloc&) {
      epoll_ctl(epoll_, EPOLL_CTL_DEL, w.watched, nullptr);
      fail(w, ENOMEM);
    }
  }

  // The kernel knows what it watches by its number, which may be another file's by now, for which
  // somebody else waits.
  void stop_watching(const io_wait& w) {
    if (w.watched < 0) return;
    if (const auto it = whose_.find(w.watched); it != whose_.end() && it->second == w.number) {
      epoll_ctl(epoll_, EPOLL_CTL_DEL, w.watched, nullptr);
      whose_.erase(it);
    }
    if (w.watched != w.fd) os::close_own(w.watched);
  }

  void fail(io_wait& w, int error) {
    w.error = error;
    if (w.watched != w.fd && w.watched >= 0) os::close_own(w.watched);
    w.watched = -1;
    unpark(&w, 1);
  }

  // EPERM: a regular file, which is always ready.
  void refuse(io_wait& w, int error) {
    w.is_watchable = error != EPERM;
    fail(w, w.is_watchable ? error : 0);
  }

  // A copy: the kernel's structure is packed.
  void tell(const epoll_event& e) {
    const std::uint64_t which = e.data.u64;
    const auto found = waits_.find(which);
    if (found != waits_.end()) unpark(found->second, 1);
  }

  void run(int set, std::uint64_t which) {
    const os::own_thread here("strata-io");
    std::array<epoll_event, 64> happened;
    // Nothing is known to wake who sleeps in a set that the program has closed. Where that has
    // happened once it may happen again: from then on we look whether it has. The first one sleeps
    // on until something happens that it waited for.
    const int limit_ms = which == 0 ? -1 : 100;
    for (;;) {
      const int n = epoll_wait(set, happened.data(), happened.size(), limit_ms);
      const bool is_gone = n < 0 && errno != EINTR;
      const std::lock_guard lock(mutex_);
      for (int i = 0; i < n; ++i) tell(happened[static_cast<std::size_t>(i)]);
      if (which != sets_) return;
      if (!is_gone) continue;
      begin_anew();
      return;
    }
  }

  int epoll_ = -1;  // made for the first wait
  [[maybe_unused]] reactor* forgotten_ = nullptr;
  bool running_ = false;
  std::uint64_t sets_ = 0;  // that have been left
  std::mutex mutex_;
  std::uint64_t numbers_ = 0;
  std::unordered_map<std::uint64_t, io_wait*> waits_;
  std::unordered_map<int, std::uint64_t> whose_;  // what is watched: by the number of which wait
};

// Made for the first wait. Never destroyed: its thread may be in it when the process ends.
constinit std::atomic<reactor*> current_one{nullptr};
constinit reactor* forgotten_ones = nullptr;  // by the children of forks

// Throws std::bad_alloc.
reactor& the_reactor() {
  reactor* r = current_one.load(std::memory_order_acquire);
  if (r != nullptr) return *r;
  auto fresh = std::make_unique<reactor>();
  // Release: who finds it finds it whole. Partners: the loads of `current_one`.
  if (current_one.compare_exchange_strong(r, fresh.get(), std::memory_order_acq_rel,
                                          std::memory_order_acquire))
    return *fresh.release();
  return *r;
}

void watch(void* waiting) {
  auto& w = *static_cast<io_wait*>(waiting);
  w.by->watch(w);
}

void forget(io_wait& w) {
  const uninterrupted guard;
  if (w.by == current_one.load(std::memory_order_acquire)) w.by->forget(w);
}

}  // namespace

unparked wait_for_events(event_wait& how) {
  // The bits of poll and epoll are the same on Linux.
  io_wait w{how.fd, static_cast<std::uint16_t>(how.events), &the_reactor(), this_worker().owner};
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
  how.is_watchable = w.is_watchable;
  return why;
}

void forget_descriptor_waits_of(const scheduler& s) noexcept {
  const uninterrupted guard;
  if (reactor* const r = current_one.load(std::memory_order_acquire)) r->forget_all_of(s);
  descriptor_turn::forget_all_of(s);
}

void forget_descriptor_waits() {
  if (reactor* const parents = current_one.exchange(nullptr, std::memory_order_acq_rel)) {
    parents->leave_to_parent(forgotten_ones);
    forgotten_ones = parents;
  }
  os::close_all_own();
  descriptor_turn::forget_all();
}

}  // namespace strata::detail
