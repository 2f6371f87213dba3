// SPDX-License-Identifier: Apache-2.0
// Standard input on its way to a node of another host. The launcher reads only so far ahead of the
// node that a window's worth waits somewhere in between.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "os/descriptor.hpp"
#include "tools/strata/events/event_loop.hpp"

namespace strata::launcher {

inline constexpr std::size_t input_window_bytes = 256 << 10;

// The launcher's end.
class input_source {
 public:
  // send gets what was read, and nothing at the end.
  input_source(event_loop& loop, int fd, std::function<void(std::string_view)> send);
  ~input_source();
  input_source(const input_source&) = delete;
  input_source& operator=(const input_source&) = delete;

  // The node has read so much.
  void taken(std::size_t bytes);
  // By when on_time() is to be called, and with the time: input may be ours to read again.
  [[nodiscard]] std::int64_t deadline_ns() const noexcept { return look_again_ns_; }
  void on_time(std::int64_t now_ns);

 private:
  // A terminal, and the system would stop us if we read from it.
  [[nodiscard]] bool is_in_background() const;
  void watch();
  // False when there is no more, or no room for more.
  bool read_once();

  event_loop& loop_;
  int fd_;
  std::function<void(std::string_view)> send_;
  std::size_t room_ = input_window_bytes;
  bool ended_ = false;
  std::int64_t look_again_ns_ = no_deadline;  // we have been put into the background
};

// The agent's end.
class input_sink {
 public:
  // taken gets the number of bytes each time the node has room for some.
  input_sink(event_loop& loop, os::descriptor to, std::function<void(std::size_t)> taken);
  ~input_sink();
  input_sink(const input_sink&) = delete;
  input_sink& operator=(const input_sink&) = delete;

  // Nothing: that was all.
  void add(std::string_view bytes);

 private:
  void pump();
  void close();

  event_loop& loop_;
  os::descriptor to_;
  std::function<void(std::size_t)> taken_;
  std::string bytes_;
  bool ended_ = false;
};

}  // namespace strata::launcher
