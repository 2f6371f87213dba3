// SPDX-License-Identifier: Apache-2.0
// Each asks first whether there is anything to wait for: what is at hand costs no more than it did.
#include "pthread/preload/kernel_waits.hpp"

#include <fcntl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "os/clock.hpp"
#include "pthread/preload/descriptor_wait.hpp"
#include "pthread/preload/elsewhere.hpp"
#include "pthread/wait.hpp"

namespace strata::preload {
namespace {

// Not those of the calling kernel thread alone. Asked first: it is a point of cancellation.
bool has_to_wait_here(int options) {
  return !can_be_suspended() || (options & (WNOHANG | __WNOTHREAD)) != 0;
}

// A call that was asked not to wait would have to. It has told so by one of these.
bool would_wait(ssize_t answer, int error, int other = 0) noexcept {
  if (answer >= 0) return false;
  const int now = detail::errno_here();
  return now == error || (other != 0 && now == other);
}

// A time that has passed: a call until then does not wait.
constexpr timespec long_ago{0, 0};

// For a call that may be made again, and then for what is left of its time.
class time_left {
 public:
  explicit time_left(const timespec* whole) noexcept
      : whole_(whole),
        has_end_(whole != nullptr && whole->tv_sec >= 0 && whole->tv_nsec >= 0 &&
                 whole->tv_nsec < 1'000'000'000),
        at_(has_end_ ? detail::posix::from_now(*whole) : timespec{}),
        end_ns_(detail::posix::deadline{CLOCK_MONOTONIC, &at_}.to_ns()) {}

  // Null, or no time at all: as it was given.
  [[nodiscard]] const timespec* now() noexcept {
    if (!has_end_) return whole_;
    const std::int64_t left_ns = std::max<std::int64_t>(end_ns_ - os::now_ns(), 0);
    left_ = {left_ns / 1'000'000'000, left_ns % 1'000'000'000};
    return &left_;
  }

 private:
  const timespec* const whole_;
  const bool has_end_;
  const timespec at_;
  const std::int64_t end_ns_;
  timespec left_{};
};

}  // namespace

pid_t await_any(int* status) { return await_child_and_usage(-1, status, 0, nullptr); }

pid_t await_child(pid_t which, int* status, int options) {
  return await_child_and_usage(which, status, options, nullptr);
}

pid_t await_any_and_usage(int* status, int options, rusage* usage) {
  return await_child_and_usage(-1, status, options, usage);
}

pid_t await_child_and_usage(pid_t which, int* status, int options, rusage* usage) {
  if (has_to_wait_here(options)) return wait4(which, status, options, usage);
  const pid_t now = wait4(which, status, options | WNOHANG, usage);
  if (now != 0) return now;
  return elsewhere([&] { return wait4(which, status, options, usage); });
}

int await_child_by_id(idtype_t kind, id_t which, siginfo_t* found, int options) {
  if (has_to_wait_here(options)) return waitid(kind, which, found, options);
  siginfo_t now{};
  if (waitid(kind, which, &now, options | WNOHANG) != 0) return -1;
  if (now.si_pid == 0) return elsewhere([&] { return waitid(kind, which, found, options); });
  if (found != nullptr) *found = now;
  return 0;
}

int lock_file(int fd, int operation) {
  if ((operation & (LOCK_NB | LOCK_UN)) != 0 || !detail::posix::stops_others())
    return flock(fd, operation);
  // Who changes the kind of a lock gives it up first, whether or not he waits.
  const int now = flock(fd, operation | LOCK_NB);
  if (now == 0 || detail::errno_here() != EWOULDBLOCK) return now;
  return elsewhere([&] { return flock(fd, operation); }, ended_by::handlers_not_restart, false);
}

int lock_part(int fd, int command, off_t bytes) {
  if (command != F_LOCK || !can_be_suspended()) return lockf(fd, command, bytes);
  const int now = lockf(fd, F_TLOCK, bytes);
  if (!would_wait(now, EAGAIN, EACCES)) return now;
  return elsewhere([&] { return lockf(fd, command, bytes); });
}

int control_file(int fd, int command, void* argument) {
  const bool may_wait = command == F_SETLKW || command == F_OFD_SETLKW;
  if (!may_wait || !can_be_suspended()) return fcntl(fd, command, argument);
  const int now = fcntl(fd, command == F_SETLKW ? F_SETLK : F_OFD_SETLK, argument);
  if (!would_wait(now, EAGAIN, EACCES)) return now;
  return elsewhere([&] { return fcntl(fd, command, argument); });
}

int await_written(int fd) {
  if (!can_be_suspended()) return tcdrain(fd);
  return elsewhere([&] { return tcdrain(fd); });
}

int await_requests(const aiocb* const requests[], int count, const timespec* timeout) {
  if (!can_be_suspended()) return aio_suspend(requests, count, timeout);
  const int now = aio_suspend(requests, count, &long_ago);
  if (!would_wait(now, EAGAIN)) return now;
  time_left left(timeout);
  return elsewhere([&] { return aio_suspend(requests, count, left.now()); }, ended_by::handlers);
}

// ---- System V's: a handler ends their waits, whatever it has been set with ----

int change_semaphores(int id, sembuf* changes, size_t count) {
  return change_semaphores_within(id, changes, count, nullptr);
}

int change_semaphores_within(int id, sembuf* changes, size_t count, const timespec* timeout) {
  std::array<sembuf, 32> at_once{};
  const auto waits = [](const sembuf& one) { return (one.sem_flg & IPC_NOWAIT) == 0; };
  if (count == 0 || count > at_once.size() || !std::all_of(changes, changes + count, waits) ||
      !detail::posix::stops_others())
    return semtimedop(id, changes, count, timeout);
  std::transform(changes, changes + count, at_once.begin(), [](sembuf one) {
    one.sem_flg = static_cast<short>(one.sem_flg | IPC_NOWAIT);
    return one;
  });
  const int now = semop(id, at_once.data(), count);
  if (!would_wait(now, EAGAIN)) return now;
  time_left left(timeout);
  const auto call = [&] { return semtimedop(id, changes, count, left.now()); };
  return elsewhere(call, ended_by::handlers, false);
}

int send_to_queue(int id, const void* message, size_t bytes, int flags) {
  if (!can_be_suspended() || (flags & IPC_NOWAIT) != 0) return msgsnd(id, message, bytes, flags);
  const int now = msgsnd(id, message, bytes, flags | IPC_NOWAIT);
  if (!would_wait(now, EAGAIN)) return now;
  return elsewhere([&] { return msgsnd(id, message, bytes, flags); }, ended_by::handlers);
}

ssize_t receive_from_queue(int id, void* message, size_t bytes, long kind, int flags) {
  if (!can_be_suspended() || (flags & IPC_NOWAIT) != 0)
    return msgrcv(id, message, bytes, kind, flags);
  const ssize_t now = msgrcv(id, message, bytes, kind, flags | IPC_NOWAIT);
  if (!would_wait(now, ENOMSG)) return now;
  return elsewhere([&] { return msgrcv(id, message, bytes, kind, flags); }, ended_by::handlers);
}

// ---- POSIX's queues ----

int put_message(mqd_t queue, const char* message, size_t bytes, unsigned priority) {
  return put_message_until(queue, message, bytes, priority, nullptr);
}

int put_message_until(mqd_t queue, const char* message, size_t bytes, unsigned priority,
                      const timespec* until) {
  const auto put = [&](const timespec* end) {
    return mq_timedsend(queue, message, bytes, priority, end);
  };
  if (!can_be_suspended()) return put(until);
  const int now = put(&long_ago);
  return would_wait(now, ETIMEDOUT) ? elsewhere([&] { return put(until); }) : now;
}

ssize_t take_message(mqd_t queue, char* message, size_t bytes, unsigned* priority) {
  return take_message_until(queue, message, bytes, priority, nullptr);
}

ssize_t take_message_until(mqd_t queue, char* message, size_t bytes, unsigned* priority,
                           const timespec* until) {
  const auto take = [&](const timespec* end) {
    return mq_timedreceive(queue, message, bytes, priority, end);
  };
  if (!can_be_suspended()) return take(until);
  const ssize_t now = take(&long_ago);
  return would_wait(now, ETIMEDOUT) ? elsewhere([&] { return take(until); }) : now;
}

}  // namespace strata::preload
