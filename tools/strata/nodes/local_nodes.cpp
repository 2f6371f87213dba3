// SPDX-License-Identifier: Apache-2.0
#include "tools/strata/nodes/local_nodes.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "base/errno_error.hpp"
#include "launch/messages.hpp"
#include "launch/site.hpp"
#include "launch/ucx_variables.hpp"
#include "tools/strata/events/shared_names.hpp"

namespace strata::launcher {

namespace {

constexpr std::array streams{output_stream::out, output_stream::err};

std::size_t index_of(output_stream stream) { return stream == output_stream::out ? 0 : 1; }

// What libraries below a transport should do unless the user has said otherwise. Which networks of
// UCX a job has may be said on the program's command line, in a variable or in a file.
std::vector<std::string> defaults_for(transport_choice transport) {
  std::vector<std::string> all;
  if (network_of(transport) == network_kind::none) return all;
  for (const auto& [name, value] : ucx_variables) {
    if (std::getenv(name) == nullptr) all.push_back(std::string(name) + "=" + value);
  }
  return all;
}

const char* name_for_people(network_kind k) {
  switch (k) {
    case network_kind::ucx:
      return "UCX";
    case network_kind::udp:
      return "UDP";
    case network_kind::none:
    case network_kind::tcp:
      break;
  }
  return "TCP";
}

}  // namespace

int make_job_memory() { return ::memfd_create("strata-job", MFD_CLOEXEC | MFD_ALLOW_SEALING); }

local_nodes::local_nodes(event_loop& loop, children& processes, node_listener& listener, int in,
                         std::function<int()> make_memory)
    : loop_(loop),
      processes_(processes),
      listener_(listener),
      in_(in),
      make_memory_(std::move(make_memory)) {}

local_nodes::~local_nodes() {
  for (const auto& n : nodes_) {
    for (const os::descriptor& output : n->output) loop_.forget(output.get());
  }
}

local_nodes::one* local_nodes::find(node_id node) {
  for (const auto& n : nodes_) {
    if (n->id == node) return n.get();
  }
  return nullptr;
}

core_plan local_nodes::share(const start_request& what) const {
  const core_wishes wanted{.nodes = static_cast<unsigned>(what.nodes.size()) + what.expected,
                           .workers = what.workers,
                           .bind = what.bind};
  if (!what.job.late) return share_cores(wanted);
  std::vector<core_share> present;
  for (const auto& n : nodes_) {
    if (n->process >= 0) present.push_back(n->share);
  }
  core_plan plan;
  plan.nodes.push_back(share_rest(present, wanted));
  if (wanted.bind && plan.nodes[0].cpus.empty()) {
    plan.warning = "no cores are left for node " + std::to_string(what.nodes[0]) +
                   ", so it is not bound: expect no speed-up from it";
  }
  return plan;
}

// Once: nodes that come late share it too, or do without it as the others do.
void local_nodes::share_memory(transport_choice transport) {
  if (std::exchange(has_tried_memory_, true)) return;
  const int fd = make_memory_();
  const int code = errno;
  shared_memory_ = os::descriptor(fd);
  if (shared_memory_) return;
  const std::string what = "cannot create memory that the nodes of this host share";
  const network_kind instead = network_of(transport);
  if (instead == network_kind::none)
    throw errno_error(what, code, "use --transport tcp, or free memory");
  listener_.on_note(what + ": " + std::generic_category().message(code) + "; they talk over " +
                    name_for_people(instead) + " instead");
}

void local_nodes::start(const start_request& what) {
  core_plan plan = share(what);
  if (!plan.warning.empty()) listener_.on_note(plan.warning);
  job_description job = what.job;
  // Of an elastic job the first node may be the only one, and not remain it.
  if (uses_memory(job.transport) && (what.nodes.size() > 1 || job.elastic)) {
    share_memory(job.transport);
  }
  job.shared_memory = shared_memory_.get();
  const os::descriptor null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!null) throw errno_error("cannot open /dev/null", errno);
  try {
    for (std::size_t i = 0; i < what.nodes.size(); ++i) {
      const core_share& share = plan.nodes[i];
      job.node = what.nodes[i];
      if (what.print_binding) {
        listener_.on_note("node " + std::to_string(job.node) + ": " + to_text(share));
      }
      job.workers = share.workers;
      job.cpus = share.cpus;
      start_one(what, job, null.get());
    }
  } catch (...) {
    for (const node_id node : what.nodes) end(node);
    throw;
  }
}

void local_nodes::start_one(const start_request& what, const job_description& job, int null) {
  std::array<int, 2> ends;
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw errno_error("cannot create a line to a node", errno);
  }
  os::descriptor ours(ends[0]);
  const os::descriptor theirs(ends[1]);

  auto started = std::make_unique<one>();
  one& n = *started;
  n.id = job.node;
  n.share = {job.cpus, job.workers};
  child_request child;
  child.program = what.program;
  child.arguments = what.arguments;
  std::vector<std::string> variables = defaults_for(job.transport);
  variables.insert(variables.end(), what.variables.begin(), what.variables.end());
  variables.push_back(std::string(job_fd_variable) + "=" + std::to_string(theirs.get()));
  variables.push_back(std::string(node_variable) + "=" + std::to_string(n.id));
  child.environment = environment_with(variables, {});
  child.directory = what.directory;
  child.in = n.id == 0 ? in_ : null;
  child.keep = {theirs.get()};
  if (shared_memory_) child.keep.push_back(shared_memory_.get());
  std::array<os::descriptor, 2> writing;
  if (what.capture_output) {
    for (const output_stream stream : streams) {
      const std::size_t i = index_of(stream);
      auto [read_end, write_end] = make_pipe();
      set_nonblocking(read_end.get());
      n.output[i] = std::move(read_end);
      writing[i] = std::move(write_end);
    }
    child.out = writing[0].get();
    child.err = writing[1].get();
  }
  const node_id id = n.id;
  n.process = processes_.start(child, [this, id](node_end how) { on_ended(id, how); });
  ++running_;
  nodes_.push_back(std::move(started));
  n.line = std::make_unique<frame_channel>(
      loop_, std::move(ours), os::descriptor(),
      frame_channel::listener{
          [this, id](const frame& f) { listener_.on_frame(id, f); },
          [this, id](const std::string& why) { listener_.on_line_ended(id, why); }});
  n.line->send(pack_welcome(job));
  watch_output(n);
}

void local_nodes::send(node_id node, const std::string& frame_bytes) {
  one* const n = find(node);
  if (n != nullptr && n->process >= 0) n->line->send(frame_bytes);
}

void local_nodes::signal(int number) {
  for (const auto& n : nodes_) {
    if (n->process >= 0) processes_.signal(n->process, number);
  }
}

void local_nodes::signal_others(int number) {
  for (const auto& n : nodes_) {
    if (n->process >= 0) processes_.signal_outside(n->process, number);
  }
}

void local_nodes::end(node_id node) {
  const one* const n = find(node);
  if (n != nullptr && n->process >= 0) processes_.signal(n->process, SIGKILL);
}

void local_nodes::abandon() { signal(SIGKILL); }

void local_nodes::pause_output(bool paused) {
  if (std::exchange(paused_, paused) == paused) return;
  for (const auto& n : nodes_) watch_output(*n);
}

void local_nodes::watch_output(one& n) {
  for (const output_stream stream : streams) {
    const int fd = n.output[index_of(stream)].get();
    if (fd < 0) continue;
    loop_.watch_reads(
        fd, paused_ ? event_loop::callback() : [this, &n, stream] { read_output(n, stream); });
  }
}

std::size_t local_nodes::read_output(one& n, output_stream stream) {
  os::descriptor& from = n.output[index_of(stream)];
  if (!from) return 0;
  // Not on the stack: `ulimit -s` may leave little more.
  constexpr std::size_t bytes_at_once = 65536;
  const auto block = std::make_unique_for_overwrite<char[]>(bytes_at_once);
  ssize_t bytes = 0;
  do {
    bytes = ::read(from.get(), block.get(), bytes_at_once);
  } while (bytes < 0 && errno == EINTR);
  if (bytes < 0 && errno == EAGAIN) return 0;
  if (bytes > 0) {
    const auto count = static_cast<std::size_t>(bytes);
    listener_.on_output(n.id, stream, {block.get(), count});
    return count;
  }
  loop_.forget(from.get());
  from.reset();
  listener_.on_output(n.id, stream, {});
  return 0;
}

void local_nodes::drain_output(one& n) {
  for (const output_stream stream : streams) {
    int waiting = 0;
    if (::ioctl(n.output[index_of(stream)].get(), FIONREAD, &waiting) != 0) continue;
    const auto said = static_cast<std::size_t>(waiting);
    std::size_t taken = 0;
    std::size_t bytes = 0;
    // One more than that, for the end.
    do {
      bytes = read_output(n, stream);
      taken += bytes;
    } while (bytes != 0 && taken <= said);
  }
}

void local_nodes::on_ended(node_id node, node_end how) {
  one& n = *find(node);
  // What it said last comes before its end.
  if (n.line != nullptr) n.line->drain();  // null: there was no room for one
  n.line.reset();
  n.process = -1;
  --running_;
  if (running_ == 0) {
    // Whoever still holds our pipes is an orphan of a node.
    processes_.kill_orphans();
    for (const auto& other : nodes_) drain_output(*other);
  } else {
    drain_output(n);
  }
  listener_.on_ended(node, how);
}

}  // namespace strata::launcher
