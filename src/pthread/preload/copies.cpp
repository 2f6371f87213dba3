// SPDX-License-Identifier: Apache-2.0
#include "pthread/preload/copies.hpp"

#include <linux/kcmp.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <new>

#include "os/own_numbers.hpp"
#include "pthread/holding.hpp"
#include "strata/detail/worker.hpp"
#include "threads/errno_here.hpp"

namespace strata::preload {

using detail::uninterrupted;

// All copies that there are. They lie on the stacks of those who wait, so nothing is allocated with
// the lock, which is held over a fork: what is listed is what the child gets.
struct descriptor_copy::list {
  static constinit detail::spin_lock lock;
  static constinit std::array<descriptor_copy*, 1024> first;
  static constinit unsigned named;
  // From before the fork until behind it: who holds the lock is not interrupted.
  alignas(uninterrupted) static thread_local constinit std::array<std::byte,
                                                                  sizeof(uninterrupted)> section;
  // Likewise, for handlers that interrupt it there. Relaxed: by one OS thread, and what interrupts
  // it.
  static thread_local constinit std::atomic<bool> is_held_here
      __attribute__((tls_model("initial-exec")));

  static descriptor_copy*& first_like(const file& f) noexcept {
    const std::uint64_t a = f.inode * 31 + static_cast<std::uint64_t>(f.number);
    return first[(a * 0x9E37'79B9'7F4A'7C15U) >> 54];
  }

  static void put(descriptor_copy& one, descriptor_copy*& at) noexcept {
    one.next_ = at;
    one.before_ = &at;
    if (at != nullptr) at->before_ = &one.next_;
    at = &one;
  }
  static void take_out(descriptor_copy& one) noexcept {
    *one.before_ = one.next_;
    if (one.next_ != nullptr) one.next_->before_ = one.before_;
    one.before_ = nullptr;
  }

  // Before the program can register handlers of its own, as in fork.cpp.
  [[gnu::constructor(101)]] static void watch_forks() {
    pthread_atfork(&hold, &release, &close_all);
  }
  static void hold() {
    ::new (section.data()) uninterrupted;
    is_held_here.store(true, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    lock.lock();
  }
  static void let_go() {
    lock.unlock();
    std::atomic_signal_fence(std::memory_order_seq_cst);
    is_held_here.store(false, std::memory_order_relaxed);
  }
  static void release() {
    let_go();
    std::destroy_at(std::launder(reinterpret_cast<uninterrupted*>(section.data())));
  }
  // Below `none`, so that it is nobody's descriptor.
  static int next_name() noexcept {
    constexpr unsigned names = 1U << 30;
    return none - 1 - static_cast<int>(named++ % names);
  }
  // In the child: the files are open no longer than in the parent. Of those who wait only one that
  // forks in a handler can be here, and it waits for the descriptor itself from now on.
  static void close_all() {
    for (descriptor_copy*& bucket : first) {
      while (bucket != nullptr) {
        descriptor_copy& one = *bucket;
        take_out(one);
        os::close_own(one.number_);
        descriptor_copy* sharer = &one;
        do {
          sharer->number_ = -1;
          sharer = sharer->sharer_;
        } while (sharer != &one);
      }
    }
    // Who has no worker any more is not interrupted anyway.
    if (detail::this_worker().owner != nullptr) return release();
    let_go();
  }
};

constinit detail::spin_lock descriptor_copy::list::lock;
constinit std::array<descriptor_copy*, 1024> descriptor_copy::list::first{};
constinit unsigned descriptor_copy::list::named = 0;
alignas(uninterrupted) thread_local constinit std::array<
    std::byte, sizeof(uninterrupted)> descriptor_copy::list::section{};

thread_local constinit std::atomic<bool> descriptor_copy::list::is_held_here{false};

detail::spin_lock& descriptor_copy::lock() noexcept { return list::lock; }

bool descriptor_copy::is_locked_by_fork_here() noexcept {
  return list::is_held_here.load(std::memory_order_relaxed);
}

descriptor_copy::file descriptor_copy::file_behind(int fd, use how) noexcept {
  const int error = detail::errno_here();
  struct stat s;
  const bool is_file = how != use::alone && fstat(fd, &s) == 0;
  detail::set_errno_here(error);
  if (!is_file) return {0, 0, 0, fd, use::alone};
  const bool is_known = S_ISSOCK(s.st_mode) || S_ISFIFO(s.st_mode);
  return {s.st_dev, s.st_ino, s.st_rdev, is_known ? -1 : fd, how};
}

// Null: none. Where the kernel does not tell, those with one number take turns at least.
descriptor_copy* descriptor_copy::first_of_same(int fd, descriptor_copy* like) noexcept {
  const pid_t here = getpid();
  for (descriptor_copy* one = like; one != nullptr; one = one->next_) {
    if (one->file_ != file_) continue;
    if (file_.number < 0) return one;
    const long differ = syscall(SYS_kcmp, here, here, KCMP_FILE, fd, one->number_);
    if (differ == 0) return one;
    if (differ < 0) {
      turns_by_ = one->turns_by_;
      return nullptr;
    }
  }
  return nullptr;
}

void descriptor_copy::join(descriptor_copy& first) noexcept {
  number_ = first.number_;
  turns_by_ = first.turns_by_;
  sharer_ = first.sharer_;
  sharer_before_ = &first;
  sharer_->sharer_before_ = this;
  first.sharer_ = this;
}

descriptor_copy::descriptor_copy(int fd, use how) noexcept : file_(file_behind(fd, how)) {
  const int error = detail::errno_here();
  {
    const detail::posix::holding held(list::lock);
    descriptor_copy*& like = list::first_like(file_);
    descriptor_copy* const one = file_.how == use::alone ? nullptr : first_of_same(fd, like);
    if (one != nullptr) {
      join(*one);
    } else {
      if (turns_by_ == none) turns_by_ = list::next_name();
      number_ = os::copy_out_of_the_way(fd);
      if (number_ >= 0) list::put(*this, like);
    }
  }
  detail::set_errno_here(error);
}

descriptor_copy::descriptor_copy(of_ours given) noexcept
    : file_(file_behind(given.fd, use::alone)) {
  const int error = detail::errno_here();
  {
    const detail::posix::holding held(list::lock);
    number_ = os::move_out_of_the_way(given.fd);
    list::put(*this, list::first_like(file_));
  }
  detail::set_errno_here(error);
}

descriptor_copy::~descriptor_copy() {
  const int error = detail::errno_here();
  {
    const detail::posix::holding held(list::lock);
    if (number_ < 0) return;
    descriptor_copy& other = *sharer_;
    other.sharer_before_ = sharer_before_;
    sharer_before_->sharer_ = &other;
    if (before_ != nullptr) {
      list::take_out(*this);
      if (&other != this) list::put(other, list::first_like(other.file_));
    }
    if (&other == this) os::close_own(number_);
  }
  detail::set_errno_here(error);
}

}  // namespace strata::preload
