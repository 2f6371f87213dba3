// SPDX-License-Identifier: Apache-2.0
// The launcher's end of a line of frames: to a node over a socket, to an agent over two pipes.
// Never blocks: what cannot be written waits in memory.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "launch/frame.hpp"
#include "os/descriptor.hpp"
#include "tools/strata/events/event_loop.hpp"
#include "tools/strata/events/shared_names.hpp"

namespace strata::launcher {

class frame_channel {
 public:
  struct listener {
    std::function<void(frame)> on_frame;
    // Once; the channel is silent afterwards. `why` is empty for a plain end, else what was wrong
    // with what arrived. May destroy the channel.
    std::function<void(const std::string& why)> on_end;
  };

  // For a socket: in, and no out. A longer payload than payload_bytes_max is refused.
  frame_channel(event_loop& loop, os::descriptor in, os::descriptor out, listener who,
                std::size_t payload_bytes_max = frame_bytes_max);
  ~frame_channel();
  frame_channel(const frame_channel&) = delete;
  frame_channel& operator=(const frame_channel&) = delete;

  void send(std::string_view frame_bytes);
  // Takes in what has arrived by now. Safe at any time.
  void drain();
  [[nodiscard]] std::size_t bytes_waiting() const noexcept { return out_bytes_.size(); }
  // Bytes that arrived and are no frame (yet).
  [[nodiscard]] std::string_view unread() const noexcept { return arrived_.rest(); }
  // Tells the other end that nothing more will come.
  void close_out();

 private:
  [[nodiscard]] int out() const noexcept { return out_ ? out_.get() : in_.get(); }
  void write_some();
  void end(const std::string& why);
  void watch();

  event_loop& loop_;
  os::descriptor in_, out_;
  listener who_;
  frame_reader arrived_;
  std::string out_bytes_;
  bool ended_ = false;
  bool out_closed_ = false;
  std::shared_ptr<bool> alive_;  // false once destroyed, for callbacks that destroy us
};

// Both throw strata::error.
void set_nonblocking(int fd);
struct pipe_ends {
  os::descriptor reading, writing;  // close-on-exec
};
pipe_ends make_pipe();

}  // namespace strata::launcher
