// SPDX-License-Identifier: Apache-2.0
// Frames: what travels on the line between launcher and node, and between launcher and agent.
// A frame is a header of eight bytes (mark, version, kind, length; little-endian) and its payload.
// Nothing that arrives is believed: a frame_reader and a payload_reader throw strata::error where
// the bytes do not say what they should, and never read or allocate beyond what is there.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace strata::launch {

// Changes with every change of a frame's layout. Launcher and program must agree.
inline constexpr std::uint8_t line_version = 13;
// A command line and an environment fit; so do the addresses of 4,096 nodes.
inline constexpr std::size_t frame_bytes_max = std::size_t{8} << 20;

enum class frame_kind : std::uint8_t {
  // launcher and node
  welcome = 1,
  reachable = 2,
  directory = 3,
  lost = 4,
  finished = 5,
  // the same, in an elastic job
  admit = 6,
  admitted = 7,
  entered = 8,
  leave = 9,
  drained = 10,
  go = 11,
  stays = 12,
  refuses = 13,
  missed = 14,
  // a job of several networks
  measured = 15,
  // launcher and agent
  start = 16,         // launcher -> agent: the nodes to start
  relay = 17,         // both: a frame of a node's line
  ended = 18,         // agent -> launcher: a node's process has ended
  output = 19,        // agent -> launcher: what a node wrote
  signal = 20,        // launcher -> agent: for all of its nodes
  note = 21,          // agent -> launcher: a line for the user
  refused = 22,       // agent -> launcher: nothing was started, and why
  line_ended = 23,    // agent -> launcher: a node closed its line
  input = 24,         // launcher -> agent: for node 0; empty: the end
  input_taken = 25,   // agent -> launcher: how much of it node 0 has read
  end_node = 26,      // launcher -> agent: kill one node, that comes late and may not
  alive = 40,         // agent -> launcher: the nodes have been started; then again and again
  output_taken = 41,  // launcher -> agent: for how much more of it there is room
  // launcher and node again
  measurements = 27,
  ways = 28,
  closed = 29,
  all_closed = 30,
  found = 31,
  all_found = 39,
  // launcher and the user's other commands (strata jobs, join, leave)
  ask_status = 32,
  status = 33,
  ask_join = 34,
  joined = 35,  // for each node that was asked for
  ask_leave = 36,
  left = 37,
  denied = 38,  // the last answer: why not
};

struct frame {
  frame_kind kind;
  std::string payload;
};

std::string pack_frame(frame_kind kind, std::string_view payload);

// Bytes in, frames out.
class frame_reader {
 public:
  // A longer payload than this is refused.
  explicit frame_reader(std::size_t payload_bytes_max = frame_bytes_max)
      : payload_bytes_max_(payload_bytes_max) {}
  void add(std::string_view bytes) { buffer_.append(bytes); }
  // The next whole frame; none yet: nullopt. Throws strata::error for what is no frame; the line is
  // of no use then.
  std::optional<frame> next();
  // Bytes of a frame that has not arrived in full.
  [[nodiscard]] std::string_view rest() const noexcept {
    return std::string_view(buffer_).substr(begin_);
  }

 private:
  std::size_t payload_bytes_max_;
  std::string buffer_;
  std::size_t begin_ = 0;  // of the next frame
};

class payload_writer {
 public:
  payload_writer& u8(std::uint8_t value) { return whole(value, 1); }
  payload_writer& u16(std::uint16_t value) { return whole(value, 2); }
  payload_writer& u32(std::uint32_t value) { return whole(value, 4); }
  payload_writer& u64(std::uint64_t value) { return whole(value, 8); }
  payload_writer& text(std::string_view value);  // length and bytes
  payload_writer& raw(std::string_view value);   // bytes only
  payload_writer& texts(const std::vector<std::string>& values);
  [[nodiscard]] const std::string& bytes() const noexcept { return bytes_; }

 private:
  payload_writer& whole(std::uint64_t value, int size);
  std::string bytes_;
};

class payload_reader {
 public:
  explicit payload_reader(std::string_view bytes) : rest_(bytes) {}
  std::uint8_t u8() { return static_cast<std::uint8_t>(whole(1)); }
  std::uint16_t u16() { return static_cast<std::uint16_t>(whole(2)); }
  std::uint32_t u32() { return static_cast<std::uint32_t>(whole(4)); }
  std::uint64_t u64() { return whole(8); }
  std::string text(std::size_t bytes_max);
  std::string_view raw(std::size_t bytes);
  std::string_view remaining() { return raw(rest_.size()); }
  std::vector<std::string> texts();
  // A count of elements of at least `bytes_each`: never more than could follow.
  std::size_t count(std::size_t bytes_each);
  // Every payload ends with this: nothing may be left.
  void done() const;

 private:
  std::uint64_t whole(int size);
  std::string_view rest_;
};

// Throws the strata::error of all of the above.
[[noreturn]] void refuse_frame(const std::string& why);

}  // namespace strata::launch
