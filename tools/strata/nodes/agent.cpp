// SPDX-License-Identifier: Apache-2.0
#include "tools/strata/nodes/agent.hpp"

#include <fcntl.h>

#include <cerrno>
#include <csignal>
#include <set>
#include <utility>

#include "base/errno_error.hpp"
#include "launch/messages.hpp"
#include "os/clock.hpp"
#include "tools/strata/events/event_loop.hpp"
#include "tools/strata/events/frame_channel.hpp"
#include "tools/strata/events/input.hpp"
#include "tools/strata/events/shared_names.hpp"
#include "tools/strata/nodes/agent_messages.hpp"
#include "tools/strata/nodes/local_nodes.hpp"
#include "tools/strata/nodes/output_window.hpp"
#include "tools/strata/processes/program_path.hpp"

namespace strata::launcher {

namespace {

// The line takes the place of a standard stream, so that nothing else can write into it.
os::descriptor take_over(int stream) {
  const os::descriptor null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  os::descriptor line(::fcntl(stream, F_DUPFD_CLOEXEC, 3));
  if (!null || !line || ::dup2(null.get(), stream) < 0) {
    throw errno_error("cannot set up the line to the launcher", errno);
  }
  return line;
}

class agent final : public node_listener {
 public:
  explicit agent(inherited_state& inherited)
      : inherited_(inherited),
        processes_(loop_, inherited),
        line_(loop_, take_over(0), take_over(1),
              {[this](const frame& f) { on_message(f); },
               [this](const std::string&) { on_launcher_gone(); }}),
        input_pipe_(make_pipe()),
        input_(
            loop_, std::move(input_pipe_.writing),
            [this](std::size_t bytes) { line_.send(pack_taken(frame_kind::input_taken, bytes)); }),
        output_([this](const std::string& frame_bytes) { line_.send(frame_bytes); }),
        nodes_(loop_, processes_, *this, input_pipe_.reading.get()) {}

  int run() {
    while (!over_ || line_.bytes_waiting() != 0) {
      loop_.run_once(alive_ns_);
      if (os::now_ns() >= alive_ns_) say_alive();
      nodes_.pause_output(output_.is_full());
    }
    return status_;
  }

  // Of a node that could not be started in full the launcher knows already.
  void on_frame(node_id node, const frame& f) override {
    if (running_.contains(node)) line_.send(pack_relay(node, pack_frame(f.kind, f.payload)));
  }
  void on_line_ended(node_id node, const std::string& why) override {
    if (running_.contains(node)) line_.send(pack_line_ended({node, why}));
  }
  void on_ended(node_id node, node_end how) override {
    if (running_.erase(node) == 0) return;
    output_.finish(node);
    line_.send(pack_ended({node, how}));
    over_ = running_.empty();
  }
  void on_output(node_id node, output_stream stream, std::string_view bytes) override {
    // After its end nobody listens.
    if (running_.contains(node)) output_.add(node, stream, bytes);
  }
  void on_note(const std::string& text) override { line_.send(pack_note(text)); }
  void on_host_lost(const std::vector<node_id>&, const std::string&, bool) override {}

 private:
  void on_message(const frame& f) {
    switch (f.kind) {
      case frame_kind::start:
        return on_start(unpack_start(f.payload));
      case frame_kind::relay: {
        const relay_message message = unpack_relay(f.payload);
        return nodes_.send(message.node, pack_frame(message.inner.kind, message.inner.payload));
      }
      case frame_kind::input:
        return input_.add(f.payload);
      case frame_kind::output_taken:
        return output_.taken(unpack_taken(f.payload));
      case frame_kind::signal:
        return nodes_.signal(unpack_signal(f.payload));
      case frame_kind::end_node:
        return nodes_.end(unpack_node(f.payload));
      default:
        refuse_frame("a message comes out of turn");
    }
  }

  void on_start(const start_request& what) {
    // Nodes of an elastic job may follow later.
    if (started_ != 0 && !what.job.late) refuse_frame("a message comes out of turn");
    try {
      start(what);
    } catch (const error& problem) {
      if (!running_.empty()) return refuse_late(what, problem.what());
      const bool user = dynamic_cast<const user_error*>(&problem) != nullptr;
      line_.send(pack_refused({user, problem.what()}));
      status_ = 1;
      over_ = true;
    }
  }

  void start(const start_request& what) {
    started_ += what.nodes.size();
    inherited_.make_room(started_ * descriptors_with_output);
    start_request checked = what;
    checked.program = find_program(what.program);
    nodes_.start(checked);
    running_.insert(what.nodes.begin(), what.nodes.end());
    input_pipe_.reading.reset();  // node 0 alone reads
    say_alive();
  }

  void say_alive() {
    // What waits to be sent says it as well.
    if (line_.bytes_waiting() == 0) line_.send(pack_frame(frame_kind::alive, {}));
    alive_ns_ = os::now_ns() + alive_every_ns;
  }

  // The nodes that run already are none the worse for it.
  void refuse_late(const start_request& what, const std::string& why) {
    line_.send(pack_note(why));
    for (const node_id node : what.nodes) line_.send(pack_ended({node, {false, 1}}));
  }

  void on_launcher_gone() {
    nodes_.abandon();
    line_.close_out();
    status_ = 1;
    over_ = true;
  }

  inherited_state& inherited_;
  event_loop loop_;
  children processes_;
  frame_channel line_;
  pipe_ends input_pipe_;
  input_sink input_;
  output_window output_;
  local_nodes nodes_;
  std::set<node_id> running_;
  std::size_t started_ = 0;              // nodes, so far
  std::int64_t alive_ns_ = no_deadline;  // when it is said again that we are there
  bool over_ = false;
  int status_ = 0;
};

}  // namespace

int run_agent(inherited_state& inherited) { return agent(inherited).run(); }

}  // namespace strata::launcher
