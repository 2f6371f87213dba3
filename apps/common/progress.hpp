// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace apps {

// A line "align  37%  1 min 12 s left" on stderr, redrawn in place; silent unless stderr is a
// terminal. add() may be called by any worker at any time: it is one relaxed atomic addition, and
// at most every tenth of a second one of the callers draws the line. Call it per tile, not per
// cell. Never blocks.
class progress {
 public:
  // total: in the caller's units (tiles, cells, steps); nothing is drawn during the first second.
  progress(std::string label, std::uint64_t total);
  // Clears the line.
  ~progress();
  progress(const progress&) = delete;
  progress& operator=(const progress&) = delete;

  void add(std::uint64_t done_now) noexcept;

 private:
  void draw(std::uint64_t done, std::int64_t now_ns) noexcept;

  const std::string label_;
  const std::uint64_t total_;
  const bool visible_;
  const std::int64_t start_ns_;
  std::atomic<std::uint64_t> done_{0};
  std::atomic<std::int64_t> next_draw_ns_;
  std::atomic<bool> drawn_{false};
};

// "4 s", "1 min 12 s", "2 h 05 min".
std::string duration_words(double seconds);

}  // namespace apps
