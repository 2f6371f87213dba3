// SPDX-License-Identifier: Apache-2.0
#include "launch/messages.hpp"

#include <algorithm>
#include <limits>

namespace strata::launch {

namespace {

constexpr std::size_t host_bytes_max = 255;
// Some hundred for a host with one network; each device adds some tens.
constexpr std::size_t worker_bytes_max = 4096;
constexpr std::size_t build_id_bytes_max = 256;
constexpr std::size_t why_bytes_max = 4096;

constexpr std::size_t address_bytes_min = 4 + 2 + 4 + 4;
constexpr std::size_t door_bytes_min = 4 + 2 + 4 + 2 + 4 + 4;

std::string pack_loss(frame_kind kind, const lost_message& message) {
  payload_writer out;
  out.u16(message.node).text(std::string_view(message.why).substr(0, why_bytes_max));
  return pack_frame(kind, out.bytes());
}

void write_address(payload_writer& out, const address& where) {
  out.text(where.host).u16(where.port).text(where.worker);
  out.u32(static_cast<std::uint32_t>(where.doors.size()));
  for (const address::door& d : where.doors) {
    out.text(d.host).u16(d.port).u32(d.megabits).u16(d.spare_port);
    out.text(d.worker).text(d.spare_worker);
  }
}

address read_address(payload_reader& in) {
  address where;
  where.host = in.text(host_bytes_max);
  where.port = in.u16();
  where.worker = in.text(worker_bytes_max);
  where.doors.resize(in.count(door_bytes_min));
  for (address::door& d : where.doors) {
    d.host = in.text(host_bytes_max);
    d.port = in.u16();
    d.megabits = in.u32();
    d.spare_port = in.u16();
    d.worker = in.text(worker_bytes_max);
    d.spare_worker = in.text(worker_bytes_max);
  }
  return where;
}

constexpr std::size_t measured_bytes = 2 + 2 + 1 + 1;

void write_measured(payload_writer& out, const std::vector<measured_link>& mine) {
  out.u32(static_cast<std::uint32_t>(mine.size()));
  for (const measured_link& m : mine) out.u16(m.other).u16(m.network).u8(m.latency).u8(m.bandwidth);
}

std::vector<measured_link> read_measured(payload_reader& in) {
  std::vector<measured_link> mine(in.count(measured_bytes));
  for (measured_link& m : mine) {
    m.other = in.u16();
    m.network = in.u16();
    m.latency = in.u8();
    m.bandwidth = in.u8();
    const auto is_step = [](std::uint8_t s) { return s <= measured_link::step_max; };
    if (m.network >= measured_link::networks_max || !is_step(m.latency) ||
        !(is_step(m.bandwidth) || m.bandwidth == measured_link::unknown))
      refuse_frame("a message tells of a network that cannot be");
  }
  return mine;
}

std::uint32_t from_int(int value) { return static_cast<std::uint32_t>(value); }

// -1 or a number that an int holds.
int to_int(std::uint32_t value) {
  if (value == from_int(-1)) return -1;
  if (value > static_cast<std::uint32_t>(std::numeric_limits<int>::max())) {
    refuse_frame("a number in a message is out of range");
  }
  return static_cast<int>(value);
}

}  // namespace

void write_job(payload_writer& out, const job_description& job) {
  out.u64(job.job);
  for (const std::uint8_t byte : job.key) out.u8(byte);
  out.u16(job.node).u16(job.nodes).u16(job.founders).u16(job.capacity);
  out.u8(job.elastic ? 1 : 0).u8(job.late ? 1 : 0);
  out.u32(static_cast<std::uint32_t>(job.left.size()));
  for (const node_id node : job.left) out.u16(node);
  for (const std::uint16_t host : job.host_of) out.u16(host);
  out.u32(static_cast<std::uint32_t>(job.cpus.size()));
  for (const int cpu : job.cpus) out.u32(from_int(cpu));
  out.u32(job.workers).u8(static_cast<std::uint8_t>(job.transport)).text(job.bind_address);
  out.u32(from_int(job.shared_memory)).u64(static_cast<std::uint64_t>(job.start_limit_ns));
}

job_description read_job(payload_reader& in) {
  job_description job;
  job.job = in.u64();
  for (std::uint8_t& byte : job.key) byte = in.u8();
  job.node = in.u16();
  job.nodes = in.u16();
  job.founders = in.u16();
  job.capacity = in.u16();
  if (job.node >= job.nodes || job.founders > job.nodes || job.nodes > job.capacity)
    refuse_frame("a message numbers its node wrongly");
  job.elastic = in.u8() != 0;
  job.late = in.u8() != 0;
  job.left.resize(in.count(2));
  for (node_id& node : job.left) {
    node = in.u16();
    if (node >= job.nodes) refuse_frame("a message numbers a node wrongly");
  }
  for (unsigned node = 0; node < job.nodes; ++node) job.host_of.push_back(in.u16());
  job.cpus.resize(in.count(4));
  for (int& cpu : job.cpus) {
    cpu = to_int(in.u32());
    if (cpu < 0) refuse_frame("a message names a CPU that cannot be");
  }
  job.workers = in.u32();
  const std::uint8_t transport = in.u8();
  if (!is_transport_choice(transport)) {
    refuse_frame("a message names an unknown transport");
  }
  job.transport = static_cast<transport_choice>(transport);
  job.bind_address = in.text(host_bytes_max);
  job.shared_memory = to_int(in.u32());
  const std::uint64_t limit = in.u64();
  if (limit > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    refuse_frame("a number in a message is out of range");
  }
  job.start_limit_ns = static_cast<std::int64_t>(limit);
  return job;
}

std::string pack_welcome(const job_description& job) {
  payload_writer out;
  write_job(out, job);
  return pack_frame(frame_kind::welcome, out.bytes());
}

job_description unpack_welcome(std::string_view payload) {
  payload_reader in(payload);
  job_description job = read_job(in);
  in.done();
  return job;
}

std::string pack_reachable(const reachable_message& message) {
  payload_writer out;
  out.text(message.build_id);
  write_address(out, message.where);
  return pack_frame(frame_kind::reachable, out.bytes());
}

reachable_message unpack_reachable(std::string_view payload) {
  payload_reader in(payload);
  reachable_message message;
  message.build_id = in.text(build_id_bytes_max);
  message.where = read_address(in);
  in.done();
  return message;
}

std::string pack_directory(const std::vector<address>& everybody) {
  payload_writer out;
  out.u32(static_cast<std::uint32_t>(everybody.size()));
  for (const address& where : everybody) write_address(out, where);
  return pack_frame(frame_kind::directory, out.bytes());
}

std::vector<address> unpack_directory(std::string_view payload) {
  payload_reader in(payload);
  std::vector<address> everybody(in.count(address_bytes_min));
  for (address& where : everybody) where = read_address(in);
  in.done();
  return everybody;
}

std::string pack_measured(const std::vector<measured_link>& mine) {
  payload_writer out;
  write_measured(out, mine);
  return pack_frame(frame_kind::measured, out.bytes());
}

std::vector<measured_link> unpack_measured(std::string_view payload) {
  payload_reader in(payload);
  auto mine = read_measured(in);
  in.done();
  return mine;
}

std::string pack_closed(frame_kind kind, const std::vector<closed_link>& all) {
  payload_writer out;
  out.u32(static_cast<std::uint32_t>(all.size()));
  for (const closed_link& c : all) out.u16(c.lower).u16(c.higher).u16(c.network);
  return pack_frame(kind, out.bytes());
}

std::vector<closed_link> unpack_closed(std::string_view payload) {
  payload_reader in(payload);
  std::vector<closed_link> all(in.count(2 + 2 + 2));
  for (closed_link& c : all) {
    c.lower = in.u16();
    c.higher = in.u16();
    c.network = in.u16();
    if (c.lower >= c.higher || c.network >= measured_link::networks_max)
      refuse_frame("a message tells of a network that cannot be");
  }
  in.done();
  return all;
}

std::string pack_measurements(const std::vector<std::vector<measured_link>>& everybodys) {
  payload_writer out;
  out.u32(static_cast<std::uint32_t>(everybodys.size()));
  for (const auto& one : everybodys) write_measured(out, one);
  return pack_frame(frame_kind::measurements, out.bytes());
}

std::vector<std::vector<measured_link>> unpack_measurements(std::string_view payload) {
  payload_reader in(payload);
  std::vector<std::vector<measured_link>> everybodys(in.count(4));
  for (auto& one : everybodys) one = read_measured(in);
  in.done();
  return everybodys;
}

std::string pack_found(std::string_view mine) { return pack_frame(frame_kind::found, mine); }

std::string unpack_found(std::string_view payload) {
  if (payload.size() > found_bytes_max) refuse_frame("a node has found too many networks");
  return std::string(payload);
}

std::string pack_all_found(const std::vector<std::string>& everybodys) {
  payload_writer out;
  out.u32(static_cast<std::uint32_t>(everybodys.size()));
  for (const std::string& one : everybodys) out.text(one);
  return pack_frame(frame_kind::all_found, out.bytes());
}

std::vector<std::string> unpack_all_found(std::string_view payload) {
  payload_reader in(payload);
  std::vector<std::string> everybodys(in.count(4));
  for (std::string& one : everybodys) one = in.text(found_bytes_max);
  in.done();
  return everybodys;
}

std::string pack_ways(std::string_view plan) { return pack_frame(frame_kind::ways, plan); }

std::string unpack_ways(std::string_view payload) {
  if (payload.size() > plan_bytes_max) refuse_frame("ways are too long");
  return std::string(payload);
}

std::string pack_lost(const lost_message& message) { return pack_loss(frame_kind::lost, message); }

std::string pack_missed(const lost_message& message) {
  return pack_loss(frame_kind::missed, message);
}

lost_message unpack_lost(std::string_view payload) {
  payload_reader in(payload);
  lost_message message;
  message.node = in.u16();
  message.why = in.text(why_bytes_max);
  in.done();
  return message;
}

std::string pack_finished() { return pack_frame(frame_kind::finished, {}); }

std::string pack_admit(const admit_message& message) {
  payload_writer out;
  out.u16(message.node).u16(message.host);
  write_address(out, message.where);
  return pack_frame(frame_kind::admit, out.bytes());
}

admit_message unpack_admit(std::string_view payload) {
  payload_reader in(payload);
  admit_message message;
  message.node = in.u16();
  message.host = in.u16();
  message.where = read_address(in);
  in.done();
  return message;
}

std::string pack_word(word_to_launcher word, node_id about) {
  const auto kind = [word] {
    switch (word) {
      case word_to_launcher::admitted:
        return frame_kind::admitted;
      case word_to_launcher::entered:
        return frame_kind::entered;
      case word_to_launcher::drained:
        return frame_kind::drained;
      case word_to_launcher::refuses:
        return frame_kind::refuses;
      case word_to_launcher::stays:
        break;
    }
    return frame_kind::stays;
  }();
  return pack_node(kind, about);
}

std::string pack_node(frame_kind kind, node_id node) {
  return pack_frame(kind, payload_writer().u16(node).bytes());
}

node_id unpack_node(std::string_view payload) {
  payload_reader in(payload);
  const node_id node = in.u16();
  in.done();
  return node;
}

std::string pack_order(frame_kind kind) { return pack_frame(kind, {}); }

}  // namespace strata::launch
