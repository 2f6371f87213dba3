// SPDX-License-Identifier: Apache-2.0
// The messages between launcher and agent. Every unpack_ takes a payload and throws strata::error
// unless it is exactly right.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "tools/strata/nodes/host_nodes.hpp"

namespace strata::launcher {

// So often an agent says that it is there (frame_kind::alive). Of a host without power, or a link
// that carries nothing any more, no system tells the other end.
inline constexpr std::int64_t alive_every_ns = 10'000'000'000;

std::string pack_start(const start_request& what);
start_request unpack_start(std::string_view payload);

struct relay_message {
  node_id node = 0;
  frame inner;
};
std::string pack_relay(node_id node, std::string_view frame_bytes);
relay_message unpack_relay(std::string_view payload);

struct ended_message {
  node_id node = 0;
  node_end how;
};
std::string pack_ended(const ended_message& message);
ended_message unpack_ended(std::string_view payload);

struct line_ended_message {
  node_id node = 0;
  std::string why;
};
std::string pack_line_ended(const line_ended_message& message);
line_ended_message unpack_line_ended(std::string_view payload);

struct output_message {
  node_id node = 0;
  output_stream stream = output_stream::out;
  std::string bytes;
};
std::string pack_output(node_id node, output_stream stream, std::string_view bytes);
output_message unpack_output(std::string_view payload);

std::string pack_input(std::string_view bytes);  // the payload is the bytes
// input_taken and output_taken
std::string pack_taken(frame_kind kind, std::size_t bytes);
std::size_t unpack_taken(std::string_view payload);

std::string pack_signal(int number);
int unpack_signal(std::string_view payload);

std::string pack_note(const std::string& text);
std::string unpack_note(std::string_view payload);

struct refused_message {
  bool user = false;
  std::string why;
};
std::string pack_refused(const refused_message& message);
refused_message unpack_refused(std::string_view payload);

}  // namespace strata::launcher
