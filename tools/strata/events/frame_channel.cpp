// SPDX-License-Identifier: Apache-2.0
#include "tools/strata/events/frame_channel.hpp"

#include <fcntl.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <memory>
#include <utility>

#include "base/errno_error.hpp"

namespace strata::launcher {

void set_nonblocking(int fd) {
  if (::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK) != 0) {
    throw errno_error("cannot set up a line", errno);
  }
}

pipe_ends make_pipe() {
  std::array<int, 2> ends;
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw errno_error("cannot create a pipe", errno);
  return {os::descriptor(ends[0]), os::descriptor(ends[1])};
}

frame_channel::frame_channel(event_loop& loop, os::descriptor in, os::descriptor out, listener who,
                             std::size_t payload_bytes_max)
    : loop_(loop),
      in_(std::move(in)),
      out_(std::move(out)),
      who_(std::move(who)),
      arrived_(payload_bytes_max),
      alive_(std::make_shared<bool>(true)) {
  set_nonblocking(in_.get());
  if (out_) set_nonblocking(out_.get());
  watch();
}

frame_channel::~frame_channel() {
  *alive_ = false;
  loop_.forget(in_.get());
  if (out_) loop_.forget(out_.get());
}

void frame_channel::watch() {
  if (!loop_.watch_reads(
          in_.get(), ended_ ? event_loop::callback() : [this] { drain(); })) {
    throw error("a line is a pipe or a socket, not a file");
  }
}

void frame_channel::send(std::string_view frame_bytes) {
  if (out_closed_ || ended_) return;
  const bool idle = out_bytes_.empty();
  out_bytes_ += frame_bytes;
  if (idle) write_some();
}

void frame_channel::write_some() {
  while (!out_bytes_.empty()) {
    // The signal of a closed pipe is ignored by launcher and agent.
    const ssize_t bytes = ::write(out(), out_bytes_.data(), out_bytes_.size());
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0 && errno == EAGAIN) {
      loop_.watch_writes(out(), [this] { write_some(); });
      return;
    }
    if (bytes < 0) {
      // The other end is gone; reading will say so, after what it still had to say.
      out_closed_ = true;
      out_bytes_.clear();
      break;
    }
    out_bytes_.erase(0, static_cast<std::size_t>(bytes));
  }
  loop_.watch_writes(out(), {});
}

void frame_channel::close_out() {
  out_closed_ = true;
  out_bytes_.clear();
  if (out_) {
    loop_.forget(out_.get());
    out_.reset();
  } else {
    ::shutdown(in_.get(), SHUT_WR);
  }
}

void frame_channel::end(const std::string& why) {
  ended_ = true;
  watch();
  who_.on_end(why);
}

void frame_channel::drain() {
  const std::shared_ptr<bool> alive = alive_;
  // Not on the stack: `ulimit -s` may leave little more.
  constexpr std::size_t bytes_at_once = 65536;
  const auto block = std::make_unique_for_overwrite<char[]>(bytes_at_once);
  while (!ended_) {
    const ssize_t bytes = ::read(in_.get(), block.get(), bytes_at_once);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0 && errno == EAGAIN) return;
    if (bytes <= 0) return end("");
    arrived_.add({block.get(), static_cast<std::size_t>(bytes)});
    try {
      while (auto next = arrived_.next()) {
        who_.on_frame(std::move(*next));
        if (!*alive) return;
      }
    } catch (const error& problem) {
      return end(problem.what());
    }
  }
}

}  // namespace strata::launcher
