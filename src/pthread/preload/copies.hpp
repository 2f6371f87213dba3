// SPDX-License-Identifier: Apache-2.0
// A call that waits in the kernel holds on to its file, whoever closes the descriptor meanwhile and
// whatever gets its number next. Here a copy of the descriptor does so: it goes with the wait, and
// neither a forked child nor a program that is started has it. Its number is a high one, out of the
// way of a program that counts on getting the lowest.
#pragma once

namespace strata::preload {

class descriptor_copy {
 public:
  // Of what `fd` is. None (is_there() is false) where the process has no room for more, and then
  // nothing is held. errno stays as it is, also at the end.
  explicit descriptor_copy(int fd) noexcept;
  ~descriptor_copy();
  descriptor_copy(const descriptor_copy&) = delete;
  descriptor_copy& operator=(const descriptor_copy&) = delete;

  [[nodiscard]] bool is_there() const noexcept { return number_ >= 0; }
  [[nodiscard]] int number() const noexcept { return number_; }

 private:
  struct list;

  int number_ = -1;
  descriptor_copy* previous_ = nullptr;
  descriptor_copy* next_ = nullptr;
};

}  // namespace strata::preload
