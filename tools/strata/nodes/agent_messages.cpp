// SPDX-License-Identifier: Apache-2.0
#include "tools/strata/nodes/agent_messages.hpp"

#include <utility>

#include "launch/messages.hpp"
#include "tools/strata/events/shared_names.hpp"

namespace strata::launcher {

namespace {

constexpr std::size_t text_bytes_max = 64 << 10;

bool read_bool(payload_reader& in) {
  const std::uint8_t value = in.u8();
  if (value > 1) refuse_frame("a message holds a switch that is neither on nor off");
  return value == 1;
}

}  // namespace

std::string pack_start(const start_request& what) {
  payload_writer out;
  out.text(what.program).texts(what.arguments).texts(what.variables).text(what.directory);
  write_job(out, what.job);
  out.u32(static_cast<std::uint32_t>(what.nodes.size()));
  for (const node_id node : what.nodes) out.u16(node);
  out.u32(what.workers).u8(what.bind).u8(what.print_binding).u8(what.capture_output);
  out.u32(what.expected);
  return pack_frame(frame_kind::start, out.bytes());
}

start_request unpack_start(std::string_view payload) {
  payload_reader in(payload);
  start_request what;
  what.program = in.text(text_bytes_max);
  what.arguments = in.texts();
  what.variables = in.texts();
  what.directory = in.text(text_bytes_max);
  what.job = read_job(in);
  what.nodes.resize(in.count(2));
  for (node_id& node : what.nodes) {
    node = in.u16();
    if (node >= what.job.nodes) refuse_frame("a message numbers its node wrongly");
  }
  what.workers = in.u32();
  what.bind = read_bool(in);
  what.print_binding = read_bool(in);
  what.capture_output = read_bool(in);
  what.expected = in.u32();
  if (what.expected > what.job.capacity) refuse_frame("a number in a message is out of range");
  in.done();
  return what;
}

std::string pack_relay(node_id node, std::string_view frame_bytes) {
  payload_writer out;
  out.u16(node).raw(frame_bytes);
  return pack_frame(frame_kind::relay, out.bytes());
}

relay_message unpack_relay(std::string_view payload) {
  payload_reader in(payload);
  const node_id node = in.u16();
  frame_reader inner;
  inner.add(in.remaining());
  auto whole = inner.next();
  if (!whole || !inner.rest().empty()) refuse_frame("a message within a message is not whole");
  return {node, std::move(*whole)};
}

std::string pack_ended(const ended_message& message) {
  payload_writer out;
  out.u16(message.node).u8(message.how.signalled).u8(static_cast<std::uint8_t>(message.how.code));
  return pack_frame(frame_kind::ended, out.bytes());
}

ended_message unpack_ended(std::string_view payload) {
  payload_reader in(payload);
  ended_message message;
  message.node = in.u16();
  message.how.signalled = read_bool(in);
  message.how.code = in.u8();
  in.done();
  return message;
}

std::string pack_line_ended(const line_ended_message& message) {
  payload_writer out;
  out.u16(message.node).text(message.why);
  return pack_frame(frame_kind::line_ended, out.bytes());
}

line_ended_message unpack_line_ended(std::string_view payload) {
  payload_reader in(payload);
  line_ended_message message;
  message.node = in.u16();
  message.why = in.text(text_bytes_max);
  in.done();
  return message;
}

std::string pack_output(node_id node, output_stream stream, std::string_view bytes) {
  payload_writer out;
  out.u16(node).u8(static_cast<std::uint8_t>(stream)).raw(bytes);
  return pack_frame(frame_kind::output, out.bytes());
}

output_message unpack_output(std::string_view payload) {
  payload_reader in(payload);
  output_message message;
  message.node = in.u16();
  const std::uint8_t stream = in.u8();
  if (stream != 1 && stream != 2) refuse_frame("a message names an unknown stream");
  message.stream = static_cast<output_stream>(stream);
  message.bytes = in.remaining();
  return message;
}

std::string pack_input(std::string_view bytes) { return pack_frame(frame_kind::input, bytes); }

std::string pack_taken(frame_kind kind, std::size_t bytes) {
  return pack_frame(kind, payload_writer().u32(static_cast<std::uint32_t>(bytes)).bytes());
}

std::size_t unpack_taken(std::string_view payload) {
  payload_reader in(payload);
  const std::size_t bytes = in.u32();
  in.done();
  return bytes;
}

std::string pack_signal(int number) {
  return pack_frame(frame_kind::signal,
                    payload_writer().u8(static_cast<std::uint8_t>(number)).bytes());
}

int unpack_signal(std::string_view payload) {
  payload_reader in(payload);
  const int number = in.u8();
  in.done();
  return number;
}

std::string pack_note(const std::string& text) {
  return pack_frame(frame_kind::note, payload_writer().text(text).bytes());
}

std::string unpack_note(std::string_view payload) {
  payload_reader in(payload);
  std::string text = in.text(text_bytes_max);
  in.done();
  return text;
}

std::string pack_refused(const refused_message& message) {
  return pack_frame(frame_kind::refused,
                    payload_writer().u8(message.user).text(message.why).bytes());
}

refused_message unpack_refused(std::string_view payload) {
  payload_reader in(payload);
  refused_message message;
  message.user = read_bool(in);
  message.why = in.text(text_bytes_max);
  in.done();
  return message;
}

}  // namespace strata::launcher
