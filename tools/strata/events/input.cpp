// SPDX-License-Identifier: Apache-2.0
#include "tools/strata/events/input.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "os/clock.hpp"
#include "tools/strata/events/frame_channel.hpp"

namespace strata::launcher {

namespace {

// No signal tells of coming back to the foreground.
constexpr std::int64_t look_again_after_ns = 1'000'000'000;

}  // namespace

input_source::input_source(event_loop& loop, int fd, std::function<void(std::string_view)> send)
    : loop_(loop), fd_(fd), send_(std::move(send)) {
  // Perhaps for ever, as behind `timeout`, and the node may want to know how much there is.
  if (is_in_background()) {
    ended_ = true;
    send_({});
    return;
  }
  watch();
}

bool input_source::is_in_background() const {
  return ::isatty(fd_) != 0 && ::tcgetpgrp(fd_) != ::getpgrp();
}

input_source::~input_source() { loop_.forget(fd_); }

void input_source::watch() {
  if (ended_ || room_ == 0) {
    loop_.forget(fd_);
  } else if (!loop_.watch_reads(fd_, [this] { read_once(); })) {
    // A file: it can be read at any time.
    while (read_once()) {
    }
  }
}

bool input_source::read_once() {
  // What is typed there is for others, and no reason to stop a job that may not want any of it.
  if (is_in_background()) {
    loop_.forget(fd_);
    look_again_ns_ = os::now_ns() + look_again_after_ns;
    return false;
  }
  std::array<char, 32768> block;
  ssize_t bytes = 0;
  do {
    bytes = ::read(fd_, block.data(), std::min(block.size(), room_));
  } while (bytes < 0 && errno == EINTR);
  if (bytes < 0 && errno == EAGAIN) return false;
  if (bytes <= 0) {
    ended_ = true;
    loop_.forget(fd_);
    send_({});
    return false;
  }
  room_ -= static_cast<std::size_t>(bytes);
  if (room_ == 0) loop_.forget(fd_);
  send_({block.data(), static_cast<std::size_t>(bytes)});
  return room_ != 0;
}

void input_source::on_time(std::int64_t now_ns) {
  if (now_ns < look_again_ns_) return;
  const bool still = is_in_background();
  look_again_ns_ = still ? now_ns + look_again_after_ns : no_deadline;
  if (!still) watch();
}

void input_source::taken(std::size_t bytes) {
  const bool was_full = room_ == 0;
  room_ = std::min(room_ + bytes, input_window_bytes);
  if (was_full && look_again_ns_ == no_deadline) watch();
}

input_sink::input_sink(event_loop& loop, os::descriptor to, std::function<void(std::size_t)> taken)
    : loop_(loop), to_(std::move(to)), taken_(std::move(taken)) {
  set_nonblocking(to_.get());
}

input_sink::~input_sink() { close(); }

void input_sink::close() {
  if (!to_) return;
  loop_.forget(to_.get());
  to_.reset();
}

void input_sink::add(std::string_view bytes) {
  if (!to_) return;
  if (bytes.empty()) ended_ = true;
  const bool idle = bytes_.empty();
  bytes_ += bytes;
  if (idle) pump();
}

void input_sink::pump() {
  while (!bytes_.empty()) {
    const ssize_t written = ::write(to_.get(), bytes_.data(), bytes_.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EAGAIN) {
      loop_.watch_writes(to_.get(), [this] { pump(); });
      return;
    }
    if (written < 0) return close();  // nobody reads any more
    bytes_.erase(0, static_cast<std::size_t>(written));
    taken_(static_cast<std::size_t>(written));
  }
  loop_.watch_writes(to_.get(), {});
  if (ended_) close();
}

}  // namespace strata::launcher
