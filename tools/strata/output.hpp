// SPDX-License-Identifier: Apache-2.0
// What nodes write, on its way to where the launcher writes.
#pragma once
#include <string>
#include <string_view>

#include "tools/strata/event_loop.hpp"

namespace strata::launch {

// Puts a prefix before each line; only whole lines come out. A longer line than this is cut.
inline constexpr std::size_t line_bytes_max = 1 << 20;

class line_prefixer {
 public:
  explicit line_prefixer(std::string prefix) : prefix_(std::move(prefix)) {}
  // The lines that are complete with these bytes.
  std::string add(std::string_view bytes);
  // What is left, as a line.
  std::string finish();

 private:
  std::string prefix_;
  std::string rest_;
};

// Whether what is written to them ends in the same place: a pipe, a terminal, a file.
bool lead_to_one_place(int fd, int other) noexcept;

// Writes to a descriptor that others share, so it cannot be made non-blocking, and still never
// blocks: it waits until a little can be written, and writes a little.
class output_queue {
 public:
  output_queue(event_loop& loop, int fd) : loop_(loop), fd_(fd) {}
  ~output_queue() { loop_.forget(fd_); }
  output_queue(const output_queue&) = delete;
  output_queue& operator=(const output_queue&) = delete;

  void add(std::string_view bytes);
  [[nodiscard]] std::size_t bytes_waiting() const noexcept { return bytes_.size(); }
  // What is added is dropped: nobody will read any more, or there is no room. The errno that said
  // so, or 0.
  [[nodiscard]] int broken() const noexcept { return broken_; }
  void blocking_flush();

 private:
  // False: nothing more can be done now.
  bool write_some(std::size_t bytes_max);
  void pump();

  event_loop& loop_;
  int fd_;
  std::string bytes_;
  int broken_ = 0;
};

}  // namespace strata::launch
