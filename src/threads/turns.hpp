// SPDX-License-Identifier: Apache-2.0
// Those who want the same of one file take turns. Who has the turn waits until the file is ready,
// and calls the kernel then: nobody else of strata::io has taken away meanwhile what was there, so
// a call that could block does not. And what comes wakes one thread instead of all.
#pragma once
#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <tuple>

#include "strata/detail/parking.hpp"

namespace strata::detail {

class scheduler;

// What ends a wait for a turn, beside its deadline.
struct turn_ends {
  bool interruption = false;
  bool signals = false;
};

class descriptor_turn {
 public:
  // Among those who read (or `writes`) what is behind `fd`, whose descriptors may be several. One
  // that is none is alone. What is known by its number alone is known by `number`. Throws
  // std::bad_alloc.
  descriptor_turn(int fd, bool writes, int number);
  descriptor_turn(int fd, bool writes) : descriptor_turn(fd, writes, fd) {}
  // It is the next one's. errno stays as it is.
  ~descriptor_turn();
  descriptor_turn(const descriptor_turn&) = delete;
  descriptor_turn& operator=(const descriptor_turn&) = delete;

  // A thread that has the turn has it also here, in a handler that has come while it waits: it ends
  // with the first of both.
  //
  // Suspends the caller until it has the turn, in order of arrival: `woken`. `timed_out` when the
  // deadline came first; with `ends`, also `interrupted` and `signalled`. Throws as park().
  [[nodiscard]] unparked take(std::int64_t deadline_ns, turn_ends ends = {});
  // The same where nobody has it; false, and nothing has happened, otherwise.
  [[nodiscard]] bool try_take() noexcept;
  [[nodiscard]] bool is_mine() const noexcept { return mine_; }

  // In the child of a fork, where none of those who had or awaited a turn is left.
  static void forget_all();
  // Of a runtime that has ended, whose stacks still exist: nobody goes on who has or awaits one.
  static void forget_all_of(const scheduler& s) noexcept;

 private:
  struct line;
  using file = std::tuple<dev_t, ino_t, int, bool>;
  struct all_lines;
  static std::atomic<all_lines*>& current();
  static all_lines& all();
  static file file_behind(int fd, bool writes, int number) noexcept;
  static bool is_taken(void* line);
  static void give_back(void* line);
  // Where who waits is woken to have the turn. Odd, as that of word_lock: what wakes late at the
  // address of an object that is no more, where a line may lie by now, hands nothing over.
  [[nodiscard]] const void* gate() const noexcept {
    return reinterpret_cast<const char*>(line_) + 1;
  }
  void has_taken() noexcept;
  void pass_on() noexcept;
  // With the mutex of those that it is among.
  void leave() noexcept;

  const file file_;
  all_lines* among_;  // not those that there are any more, behind a fork in a handler
  line* line_;
  const scheduler* home_;  // of the caller
  descriptor_turn* previous_ = nullptr;
  descriptor_turn* next_ = nullptr;
  bool mine_ = false;
  bool is_within_ = false;  // that of another one of the same thread, which passes it on
};

}  // namespace strata::detail
