// SPDX-License-Identifier: Apache-2.0
// Small numbers, from 1 on, of those who run code in this process: the workers of all runtimes, and
// the OS threads outside that ask for one (number_outside()). Nobody has that of another meanwhile;
// one that has been given back is soon taken again, and who takes it sees all that was done before.
#pragma once

namespace strata::detail {

class worker_number {
 public:
  // Throws std::bad_alloc.
  worker_number();
  // Once whoever had it runs nothing any more.
  ~worker_number();
  worker_number(const worker_number&) = delete;
  worker_number& operator=(const worker_number&) = delete;
  [[nodiscard]] unsigned value() const noexcept { return value_; }

 private:
  const unsigned value_;
};

// In the child of a fork, where the caller keeps its number: nobody gives back those of others.
void forget_worker_numbers();

}  // namespace strata::detail
