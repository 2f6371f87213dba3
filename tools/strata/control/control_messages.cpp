// SPDX-License-Identifier: Apache-2.0
#include "tools/strata/control/control_messages.hpp"

#include "launch/messages.hpp"
#include "strata/error.hpp"
#include "tools/strata/events/shared_names.hpp"
#include "tools/strata/hosts/hosts.hpp"

namespace strata::launcher {

namespace {

constexpr std::size_t control_text_bytes_max = 1024;

std::string_view cut(const std::string& text) {
  return std::string_view(text).substr(0, control_text_bytes_max);
}

}  // namespace

std::string pack_ask_status() { return pack_frame(frame_kind::ask_status, {}); }

std::string pack_status(const job_status& what) {
  payload_writer out;
  out.text(cut(what.program)).text(cut(what.nodes)).u32(what.launcher);
  return pack_frame(frame_kind::status, out.bytes());
}

job_status unpack_status(std::string_view payload) {
  payload_reader in(payload);
  job_status what;
  what.program = in.text(control_text_bytes_max);
  what.nodes = in.text(control_text_bytes_max);
  what.launcher = in.u32();
  in.done();
  return what;
}

std::string pack_ask_join(const join_request& what) {
  payload_writer out;
  out.u32(what.nodes).u32(what.workers).text(what.host).text(what.address);
  return pack_frame(frame_kind::ask_join, out.bytes());
}

join_request unpack_ask_join(std::string_view payload) {
  payload_reader in(payload);
  join_request what;
  what.nodes = in.u32();
  what.workers = in.u32();
  what.host = in.text(control_text_bytes_max);
  what.address = in.text(control_text_bytes_max);
  in.done();
  if (what.nodes < 1 || what.nodes > nodes_max || what.workers > workers_max) {
    refuse_frame("a number in a message is out of range");
  }
  // It becomes an argument of ssh.
  if (!what.host.empty()) check_host_name(what.host);
  return what;
}

std::string pack_joined(node_id node) { return pack_node(frame_kind::joined, node); }
std::string pack_ask_leave(node_id node) { return pack_node(frame_kind::ask_leave, node); }
std::string pack_left(node_id node) { return pack_node(frame_kind::left, node); }

std::string pack_denied(const std::string& why) {
  return pack_frame(frame_kind::denied, payload_writer().text(cut(why)).bytes());
}

std::string unpack_denied(std::string_view payload) {
  payload_reader in(payload);
  std::string why = in.text(control_text_bytes_max);
  in.done();
  return why;
}

}  // namespace strata::launcher
