// SPDX-License-Identifier: Apache-2.0
#include "launch/pmix/seat.hpp"

#include <algorithm>
#include <optional>

#include "launch/frame.hpp"
#include "launch/messages.hpp"
#include "strata/error.hpp"

namespace strata::launch::pmix {

namespace {

// A node of another version would misread what follows.
constexpr std::uint8_t version = 1;

payload_reader opened(std::string_view bytes) {
  payload_reader in(bytes);
  if (in.u8() != version) {
    throw user_error(
        "the nodes of this job are built with different versions of Strata; install the same "
        "program on every host");
  }
  return in;
}

// The payload of a frame that our launcher's nodes send.
std::string only_frame(std::string_view bytes, frame_kind kind) {
  frame_reader reader;
  reader.add(bytes);
  std::optional<frame> only = reader.next();
  if (!only || only->kind != kind || !reader.rest().empty())
    refuse_frame("a message comes out of turn");
  return std::move(only->payload);
}

}  // namespace

std::string pack(const seat& s) {
  payload_writer out;
  out.u8(version).u32(s.process).u32(s.first_there);
  out.u32(static_cast<std::uint32_t>(s.cpus.size()));
  for (const int cpu : s.cpus) out.u32(static_cast<std::uint32_t>(cpu));
  out.u32(s.memory.process).u32(s.memory.memory).u32(s.memory.roll);
  for (const std::uint8_t byte : s.memory.mark) out.u8(byte);
  return out.bytes();
}

seat unpack_seat(std::string_view bytes) {
  payload_reader in = opened(bytes);
  seat s;
  s.process = in.u32();
  s.first_there = in.u32();
  s.cpus.resize(in.count(4));
  for (int& cpu : s.cpus) cpu = static_cast<int>(in.u32() & 0x7fffffffU);
  s.memory.process = in.u32();
  s.memory.memory = in.u32();
  s.memory.roll = in.u32();
  for (std::uint8_t& byte : s.memory.mark) byte = in.u8();
  in.done();
  return s;
}

std::string pack(const secret& s) {
  payload_writer out;
  out.u8(version).u64(s.job).u8(static_cast<std::uint8_t>(s.transport));
  for (const std::uint8_t byte : s.key) out.u8(byte);
  return out.bytes();
}

secret unpack_secret(std::string_view bytes) {
  payload_reader in = opened(bytes);
  secret s;
  s.job = in.u64();
  const std::uint8_t transport = in.u8();
  if (!is_transport_choice(transport)) refuse_frame("a message names an unknown transport");
  s.transport = static_cast<transport_choice>(transport);
  for (std::uint8_t& byte : s.key) byte = in.u8();
  in.done();
  return s;
}

std::string pack(const entry& e) { return pack_reachable({e.build_id, e.where}); }

entry unpack_entry(std::string_view bytes) {
  reachable_message message = unpack_reachable(only_frame(bytes, frame_kind::reachable));
  return {std::move(message.build_id), std::move(message.where)};
}

std::string unpack_found_networks(std::string_view bytes) {
  return unpack_found(only_frame(bytes, frame_kind::found));
}

std::string pack(const std::vector<closed_link>& mine) {
  return pack_closed(frame_kind::closed, mine);
}

std::vector<closed_link> unpack_closed_links(std::string_view bytes) {
  return unpack_closed(only_frame(bytes, frame_kind::closed));
}

std::string pack(const std::vector<measured_link>& mine) { return pack_measured(mine); }

std::vector<measured_link> unpack_links(std::string_view bytes) {
  return unpack_measured(only_frame(bytes, frame_kind::measured));
}

}  // namespace strata::launch::pmix
