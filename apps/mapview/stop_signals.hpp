// SPDX-License-Identifier: Apache-2.0
// SIGINT and SIGTERM for a program that ends in its own time: a thread of ours waits for them. (A
// handler would run on whatever thread sleeps at the time, if at all: ThreadSanitizer keeps it back
// until that thread wakes.)
#pragma once

namespace mapview {

class stop_signals {
 public:
  // From now on they do not end the process. Before any other thread is made, which would not know.
  // See ignored_signals.hpp.
  stop_signals();
  ~stop_signals();
  stop_signals(const stop_signals&) = delete;
  stop_signals& operator=(const stop_signals&) = delete;

  // Suspends until one has come; the next one ends the process, unless it is so soon that it means
  // the same. False if it cannot wait. In the runtime, once.
  [[nodiscard]] bool wait();
  // For a wait that nobody needs any more: as if one had come. Nothing when it is over. Any thread.
  static void come();

 private:
  [[nodiscard]] bool is_ignored(int number) const noexcept;

  int signals_;
  bool ignores_interrupt_, ignores_termination_;
};

}  // namespace mapview
