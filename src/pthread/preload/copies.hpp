// SPDX-License-Identifier: Apache-2.0
// A call that waits in the kernel holds on to its file, whoever closes the descriptor meanwhile and
// whatever gets its number next. Here a copy of the descriptor does so: it goes with the wait, and
// neither a forked child nor a program that is started has it. Its number is a high one, see
// os/own_numbers.hpp. Those who take turns at a file have one copy together. Where the kernel
// does not tell whether two descriptors with one number are the same file, each has a copy, and
// they take turns as if.
#pragma once
#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "sync/spin_lock.hpp"

namespace strata::preload {

class descriptor_copy {
 public:
  enum class use : std::uint8_t { to_read, to_write, alone };

  // Of what `fd` is; unless `alone`, together with those who have the same use for it. None
  // (is_there() is false) where the process has no room for more, and then nothing is held. errno
  // stays as it is, also at the end.
  descriptor_copy(int fd, use how) noexcept;
  // fd itself, which nobody else knows, with such a number if there is one.
  struct of_ours {
    int fd;
  };
  explicit descriptor_copy(of_ours given) noexcept;
  ~descriptor_copy();
  descriptor_copy(const descriptor_copy&) = delete;
  descriptor_copy& operator=(const descriptor_copy&) = delete;

  [[nodiscard]] bool is_there() const noexcept { return number_ >= 0; }
  [[nodiscard]] int number() const noexcept { return number_; }
  // What those who take turns at the file know it by, if it has no name of its own: no descriptor's
  // number, which may be another file's while some of them are still there. `none`: of_ours.
  static constexpr int none = -1;
  [[nodiscard]] int number_for_turns() const noexcept { return turns_by_; }

  // Who holds it finds that no number becomes, or ceases to be, one of these copies.
  static detail::spin_lock& lock() noexcept;
  // By a handler: it has interrupted the calling thread in a fork, which holds the lock.
  [[nodiscard]] static bool is_locked_by_fork_here() noexcept;

 private:
  struct list;
  // What is the same for all descriptors of one socket or pipe. Others count as the same file only
  // with the same number, and if the kernel says so.
  struct file {
    dev_t device = 0;
    ino_t inode = 0;
    dev_t what = 0;
    int number = -1;
    use how = use::alone;

    bool operator==(const file&) const = default;
  };
  static file file_behind(int fd, use how) noexcept;
  descriptor_copy* first_of_same(int fd, descriptor_copy* like) noexcept;
  void join(descriptor_copy& first) noexcept;

  file file_;
  int number_ = -1;
  int turns_by_ = none;
  // Of the list, if it is the first of those who have the number together.
  descriptor_copy* next_ = nullptr;
  descriptor_copy** before_ = nullptr;
  // The ring of those.
  descriptor_copy* sharer_ = this;
  descriptor_copy* sharer_before_ = this;
};

}  // namespace strata::preload
