// SPDX-License-Identifier: Apache-2.0
// What nodes write, on its way to where the launcher writes.
#pragma once
#include <string>
#include <string_view>

#include "os/descriptor.hpp"
#include "tools/strata/events/event_loop.hpp"

namespace strata::launcher {

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
// blocks: it waits until a little can be written, and writes a little. How little that is in a
// terminal, and what others write into a pipe meanwhile, nobody says: it opens both once more, for
// itself.
class output_queue {
 public:
  output_queue(event_loop& loop, int fd);
  ~output_queue();
  output_queue(const output_queue&) = delete;
  output_queue& operator=(const output_queue&) = delete;

  void add(std::string_view bytes);
  [[nodiscard]] std::size_t bytes_waiting() const noexcept { return bytes_.size() - written_; }
  // What is added is dropped: nobody will read any more, there is no room, or the stream is closed.
  // The errno that said so, or 0.
  [[nodiscard]] int broken() const noexcept { return broken_; }
  void blocking_flush();

 private:
  // False: nothing more can be done now.
  bool write_some();
  void pump();

  event_loop& loop_;
  os::descriptor own_;  // fd_, where it could be had
  int fd_;
  std::size_t bytes_at_once_;
  std::string bytes_;
  std::size_t written_ = 0;  // of these, already
  int broken_ = 0;
};

}  // namespace strata::launcher
