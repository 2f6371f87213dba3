// SPDX-License-Identifier: Apache-2.0
#include "tools/strata/nodes/remote_nodes.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <utility>

#include "base/errno_error.hpp"
#include "base/shortened.hpp"
#include "base/values.hpp"
#include "launch/messages.hpp"
#include "os/clock.hpp"
#include "tools/strata/events/seconds.hpp"
#include "tools/strata/events/shared_names.hpp"
#include "tools/strata/nodes/agent_messages.hpp"
#include "tools/strata/processes/program_path.hpp"

namespace strata::launcher {

namespace {

constexpr std::size_t last_words_bytes_max = 4096;
constexpr std::size_t line_shown_bytes_max = 200;
// Nor stays behind with our pipes in its hands.
constexpr std::array never_asks{"-o", "BatchMode=yes", "-o", "ControlMaster=no"};

// Counted, not measured: who was stopped itself has missed nothing.
constexpr unsigned looks_in_vain_max = 3;

// The shell of the other host splits what ssh gives it.
std::string for_shell(const std::string& word) {
  constexpr std::string_view plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+-";
  if (word.find_first_not_of(plain) == std::string::npos) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

// The lines that say anything, without what a terminal would obey.
std::vector<std::string> readable_lines(const std::string& text) {
  std::istringstream lines(text);
  std::vector<std::string> result;
  for (std::string line; std::getline(lines, line);) {
    std::replace_if(
        line.begin(), line.end(), [](unsigned char c) { return c < ' ' || c > '~'; }, ' ');
    if (!trimmed(line).empty()) result.emplace_back(trimmed(line));
  }
  return result;
}

}  // namespace

std::vector<std::string> remote_command() {
  const char* const variable = std::getenv("STRATA_SSH");
  std::istringstream words(variable != nullptr ? variable : "");
  std::vector<std::string> command;
  for (std::string word; words >> word;) command.push_back(word);
  if (command.empty()) command = {"ssh"};
  // Of an option that is given twice ssh takes the first: what it would ask nobody answers.
  if (std::filesystem::path(command[0]).filename() == "ssh")
    command.insert(command.begin() + 1, never_asks.begin(), never_asks.end());
  command[0] = find_program(command[0]);
  return command;
}

remote_nodes::remote_nodes(event_loop& loop, children& processes, node_listener& listener,
                           std::string host, std::vector<std::string> command)
    : loop_(loop),
      processes_(processes),
      listener_(listener),
      host_(std::move(host)),
      command_(std::move(command)),
      output_([this](std::size_t bytes) {
        line_->send(pack_taken(frame_kind::output_taken, bytes));
      }) {}

remote_nodes::~remote_nodes() { loop_.forget(complaints_.get()); }

void remote_nodes::start(const start_request& what) {
  if (!line_) start_agent();
  running_.insert(what.nodes.begin(), what.nodes.end());
  start_request captured = what;
  captured.capture_output = true;
  line_->send(pack_start(captured));
  // Of all other jobs the session knows who has not joined.
  if (!heard_ && what.job.nodes == 1 && !what.job.elastic) {
    start_limit_ns_ = what.job.start_limit_ns;
    limit_ns_ = os::now_ns() + start_limit_ns_;
  }
  if (running_.contains(0) && !input_) {
    input_ = std::make_unique<input_source>(
        loop_, STDIN_FILENO, [this](std::string_view bytes) { line_->send(pack_input(bytes)); });
  }
}

void remote_nodes::start_agent() {
  auto [agent_in, to_agent] = make_pipe();
  auto [from_agent, agent_out] = make_pipe();
  auto [complaints, agent_err] = make_pipe();
  child_request ssh;
  ssh.program = command_[0];
  ssh.arguments = command_;
  ssh.arguments.insert(ssh.arguments.end(), {host_, for_shell(own_path()), "agent"});
  ssh.environment = environment_with({}, {});
  ssh.in = agent_in.get();
  ssh.out = agent_out.get();
  ssh.err = agent_err.get();
  ssh.own_session = true;
  ssh_ = processes_.start(ssh, [this](node_end) { ssh_ = -1; });
  complaints_ = std::move(complaints);
  set_nonblocking(complaints_.get());
  loop_.watch_reads(complaints_.get(), [this] { read_complaints(); });
  line_ = std::make_unique<frame_channel>(
      loop_, std::move(from_agent), std::move(to_agent),
      frame_channel::listener{[this](const frame& f) { on_frame(f); },
                              [this](const std::string& why) { on_end(why); }});
}

void remote_nodes::send(node_id node, const std::string& frame_bytes) {
  if (running_.contains(node)) line_->send(pack_relay(node, frame_bytes));
}

void remote_nodes::signal(int number) {
  if (running_.empty()) return;
  if ((number == SIGTERM || number == SIGKILL) && !heard_) {
    // Perhaps ssh still waits for the other host. An agent takes the end of its line as the order.
    return lose("host " + host_ + ": no answer", false);
  }
  line_->send(pack_signal(number));
}

void remote_nodes::end(node_id node) {
  if (!running_.contains(node)) return;
  // Perhaps ssh still waits for the other host.
  if (!heard_) return lose("host " + host_ + ": no answer", false);
  line_->send(pack_node(frame_kind::end_node, node));
}

std::int64_t remote_nodes::deadline_ns() const noexcept {
  if (running_.empty()) return no_deadline;
  return input_ ? std::min(limit_ns_, input_->deadline_ns()) : limit_ns_;
}

void remote_nodes::on_time(std::int64_t now_ns) {
  if (input_) input_->on_time(now_ns);
  if (running_.empty() || now_ns < limit_ns_) return;
  // We may have been stopped for longer than the other end has been silent.
  line_->drain();
  if (running_.empty()) return;
  if (!heard_) {
    return lose("host " + host_ + ": no answer within " + to_seconds(start_limit_ns_) +
                    " (--start-limit sets the limit)",
                false);
  }
  limit_ns_ = now_ns + alive_every_ns;
  if (looks_in_vain_++ < looks_in_vain_max) return;
  lose("host " + host_ + ": nothing heard for " + to_seconds(looks_in_vain_max * alive_every_ns),
       false);
}

void remote_nodes::pause_output(bool paused) { output_.pause(paused); }

void remote_nodes::abandon() {
  if (ssh_ >= 0) processes_.signal(ssh_, SIGKILL);
}

node_id remote_nodes::checked(node_id node) const {
  if (!running_.contains(node)) refuse_frame("a message numbers its node wrongly");
  return node;
}

void remote_nodes::on_frame(const frame& f) {
  if (!std::exchange(heard_, true)) limit_ns_ = 0;
  looks_in_vain_ = 0;
  switch (f.kind) {
    case frame_kind::relay: {
      const relay_message message = unpack_relay(f.payload);
      return listener_.on_frame(checked(message.node), message.inner);
    }
    case frame_kind::line_ended: {
      const line_ended_message message = unpack_line_ended(f.payload);
      return listener_.on_line_ended(checked(message.node), message.why);
    }
    case frame_kind::output: {
      const output_message message = unpack_output(f.payload);
      listener_.on_output(checked(message.node), message.stream, message.bytes);
      return output_.received(message.bytes.size());
    }
    case frame_kind::ended: {
      const ended_message message = unpack_ended(f.payload);
      running_.erase(checked(message.node));
      return listener_.on_ended(message.node, message.how);
    }
    case frame_kind::input_taken:
      if (!input_) refuse_frame("a message comes out of turn");
      return input_->taken(unpack_taken(f.payload));
    case frame_kind::alive:
      return;
    case frame_kind::note:
      return listener_.on_note(host_ + ": " + unpack_note(f.payload));
    case frame_kind::refused: {
      const refused_message message = unpack_refused(f.payload);
      return lose(host_ + ": " + message.why, message.user);
    }
    default:
      refuse_frame("a message comes out of turn");
  }
}

void remote_nodes::read_complaints() {
  std::array<char, 4096> block;
  while (true) {
    const ssize_t bytes = ::read(complaints_.get(), block.data(), block.size());
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) return;
    if (bytes == 0) return loop_.forget(complaints_.get());
    last_words_.append(block.data(), static_cast<std::size_t>(bytes));
    if (last_words_.size() > last_words_bytes_max) {
      last_words_.erase(0, last_words_.size() - last_words_bytes_max);
    }
  }
}

void remote_nodes::on_end(const std::string& why) {
  if (running_.empty()) return;
  read_complaints();
  const auto said = readable_lines(last_words_);
  if (!why.empty() && !heard_) {
    const auto got = readable_lines(std::string(line_->unread().substr(0, line_shown_bytes_max)));
    lose("host " + host_ + ": got " + in_quotes(got.empty() ? "" : got.front()) +
             " in place of an answer; a login there must print nothing",
         false);
  } else if (!why.empty()) {
    lose("host " + host_ + ": " + why, false);
  } else {
    lose("host " + host_ + ": the connection ended" + (said.empty() ? "" : ": " + said.back()),
         false);
  }
}

void remote_nodes::lose(const std::string& why, bool user) {
  const std::vector<node_id> gone(running_.begin(), running_.end());
  running_.clear();
  abandon();
  listener_.on_host_lost(gone, why, user);
}

}  // namespace strata::launcher
