// SPDX-License-Identifier: Apache-2.0
#include "threads/turns.hpp"

#include <sys/stat.h>

#include <atomic>
#include <map>
#include <mutex>
#include <utility>

#include "sched/place.hpp"
#include "sched/waiting_stacks.hpp"
#include "strata/detail/deadline.hpp"
#include "strata/detail/parking.hpp"
#include "strata/detail/worker.hpp"
#include "threads/errno_here.hpp"

namespace strata::detail {

struct descriptor_turn::line {
  std::atomic<bool> taken{false};  // set back with the queue locked, where nobody waits for it
  unsigned users = 0;              // with all_lines::mutex
  // Whose turn it is; null: nobody's, or a thread's without a stack of a runtime. Relaxed: nobody
  // looks for another one there than itself.
  std::atomic<const stack*> holder{nullptr};
};

struct descriptor_turn::all_lines {
  std::mutex mutex;
  std::map<file, line> by_file;
  descriptor_turn* first = nullptr;  // of all that there are
  all_lines* forgotten = nullptr;    // of the process that this one was forked from
};

// Never destroyed: threads may be in it when the process ends.
std::atomic<descriptor_turn::all_lines*>& descriptor_turn::current() {
  static std::atomic<all_lines*> one{new all_lines};
  return one;
}
descriptor_turn::all_lines& descriptor_turn::all() {
  return *current().load(std::memory_order_acquire);
}

void descriptor_turn::forget_all() {
  auto* const fresh = new all_lines;
  fresh->forgotten = &all();
  current().store(fresh, std::memory_order_release);
}

// Sockets and pipes are known by their inode, so copies of a descriptor count as one. Opening the
// same device twice can give two things that have nothing to do with each other, and what the
// kernel makes for a descriptor alone (an eventfd, a timer) has one inode for all.
descriptor_turn::file descriptor_turn::file_behind(int fd, bool writes, int number) noexcept {
  struct stat s;
  if (::fstat(fd, &s) == 0 && (S_ISSOCK(s.st_mode) || S_ISFIFO(s.st_mode)))
    return {s.st_dev, s.st_ino, -1, writes};
  return {0, 0, number, writes};
}

descriptor_turn::descriptor_turn(int fd, bool writes, int number)
    : file_(file_behind(fd, writes, number)), among_(&all()), home_(this_worker().owner) {
  const uninterrupted guard;
  const std::lock_guard lock(among_->mutex);
  line_ = &among_->by_file[file_];
  ++line_->users;
  next_ = std::exchange(among_->first, this);
  if (next_ != nullptr) next_->previous_ = this;
}

void descriptor_turn::leave() noexcept {
  (previous_ != nullptr ? previous_->next_ : among_->first) = next_;
  if (next_ != nullptr) next_->previous_ = previous_;
  if (--line_->users == 0) among_->by_file.erase(file_);
}

descriptor_turn::~descriptor_turn() {
  const uninterrupted guard;
  const int error = errno_here();
  if (among_ == &all()) {
    pass_on();
    const std::lock_guard lock(among_->mutex);
    leave();
  }
  set_errno_here(error);
}

void descriptor_turn::forget_all_of(const scheduler& s) noexcept {
  all_lines& lines = all();
  const std::lock_guard lock(lines.mutex);
  for (descriptor_turn* t = lines.first; t != nullptr;) {
    descriptor_turn* const next = t->next_;
    if (t->home_ == &s) {
      t->pass_on();
      t->leave();
    }
    t = next;
  }
}

bool descriptor_turn::is_taken(void* line_of_file) {
  return static_cast<line*>(line_of_file)->taken.load(std::memory_order_relaxed);
}

void descriptor_turn::give_back(void* line_of_file) {
  // Release: who takes it next writes who has it after us. Partner: try_take().
  static_cast<line*>(line_of_file)->taken.store(false, std::memory_order_release);
}

void descriptor_turn::has_taken() noexcept {
  mine_ = true;
  line_->holder.store(stack_of_task(), std::memory_order_relaxed);
}

void descriptor_turn::pass_on() noexcept {
  if (!mine_ || is_within_) return;
  line_->holder.store(nullptr, std::memory_order_relaxed);
  unpark_one_or(gate(), &give_back, line_);
}

bool descriptor_turn::try_take() noexcept {
  if (mine_) return true;
  // Acquire: see give_back().
  if (!line_->taken.exchange(true, std::memory_order_acquire)) {
    has_taken();
    return true;
  }
  const stack* const mine = stack_of_task();
  is_within_ = mine != nullptr && line_->holder.load(std::memory_order_relaxed) == mine;
  return mine_ = is_within_;
}

unparked descriptor_turn::take(std::int64_t deadline_ns, turn_ends ends) {
  while (!try_take()) {
    if (deadline_ns != parking::never && deadline_ns <= deadline_now()) return unparked::timed_out;
    const unparked why = park({.what = wait_for_descriptor,
                               .address = gate(),
                               .still = &is_taken,
                               .argument = line_,
                               .deadline_ns = deadline_ns,
                               .interruptible = ends.interruption});
    if (why == unparked::timed_out) return why;
    if (why == unparked::woken) {  // handed over
      has_taken();
      break;
    }
    if (ends.interruption && why == unparked::interrupted) return why;
    if (ends.signals && why == unparked::signalled) return why;
  }
  return unparked::woken;
}

}  // namespace strata::detail
