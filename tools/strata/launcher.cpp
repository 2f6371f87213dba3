// SPDX-License-Identifier: Apache-2.0
#include "tools/strata/launcher.hpp"

#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <exception>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/errno_error.hpp"
#include "base/standard_output.hpp"
#include "os/clock.hpp"
#include "os/topology.hpp"
#include "tools/strata/control/control_socket.hpp"
#include "tools/strata/course/session.hpp"
#include "tools/strata/events/output.hpp"
#include "tools/strata/events/signals.hpp"
#include "tools/strata/job_hosts.hpp"
#include "tools/strata/nodes/local_nodes.hpp"
#include "tools/strata/nodes/remote_nodes.hpp"
#include "tools/strata/placement.hpp"

namespace strata::launcher {

namespace {

// Beyond it the nodes have to wait with their output.
constexpr std::size_t waiting_bytes_max = 1 << 20;
// For the connections of the control socket.
constexpr std::size_t descriptors_of_control = 300;

void fill_with_randomness(void* to, std::size_t bytes) {
  // So few bytes come at once or not at all.
  if (::getrandom(to, bytes, 0) != static_cast<ssize_t>(bytes)) {
    throw errno_error("cannot make a key for the job", errno);
  }
}

// What all of its nodes are told.
job_description new_job(const run_request& what, std::vector<std::uint16_t> host_of) {
  job_description job;
  job.nodes = static_cast<node_id>(what.nodes);
  job.elastic = what.elastic;
  job.founders = static_cast<node_id>(what.nodes);
  job.capacity = static_cast<node_id>(what.elastic ? what.capacity : what.nodes);
  job.host_of = std::move(host_of);
  job.transport = what.transport;
  job.start_limit_ns = what.start_limit_ns;
  fill_with_randomness(&job.job, sizeof job.job);
  fill_with_randomness(job.key.data(), job.key.size());
  return job;
}

// For what it has of each node here and of each other host.
std::size_t descriptors_for(const run_request& what, const std::vector<placed_host>& hosts) {
  // A late node may be here or need an agent of its own.
  constexpr std::size_t for_late = std::max(descriptors_with_output, descriptors_of_agent);
  if (what.elastic) return what.capacity * for_late + descriptors_of_control;
  std::size_t count = 0;
  for (const placed_host& h : hosts) {
    count += h.local ? h.nodes.size() * (what.prefix ? descriptors_with_output : 1)
                     : descriptors_of_agent;
  }
  return count;
}

class launcher final : public node_listener, public job_actions {
 public:
  launcher(const run_request& what, inherited_state& inherited, const job_description& job,
           const std::vector<placed_host>& hosts)
      : what_(what),
        processes_(loop_, inherited),
        session_(describe(what, job.host_of, hosts), *this, os::now_ns()),
        out_(loop_, STDOUT_FILENO),
        err_(loop_, STDERR_FILENO),
        signals_(std::make_unique<signal_events>(
            loop_,
            std::initializer_list<int>{SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT, SIGUSR1,
                                       SIGUSR2},
            [this](const signalfd_siginfo& info) { on_signal(info); })),
        name_(job_name(job.job)),
        hosts_(loop_, processes_, *this, what, job, hosts) {
    // Before anything runs: a folder that cannot be used is the user's to put right.
    if (what.elastic) open_control();
    hosts_.start();
    ::sigpending(&at_start_);
  }

  int run() {
    while (!session_.over()) {
      const std::int64_t deadline_ns =
          std::min({session_.deadline_ns(), hosts_.deadline_ns(),
                    control_ != nullptr ? control_->deadline_ns() : no_deadline});
      loop_.run_once(deadline_ns);
      // That we go on, after somebody has stopped us, is heard before a time has passed for us.
      if (os::now_ns() >= deadline_ns) loop_.run_once(0);
      looked_ns_ = os::now_ns();
      const bool full =
          out_.bytes_waiting() > waiting_bytes_max || err_.bytes_waiting() > waiting_bytes_max;
      hosts_.pause_output(full);
      if (full) session_.excuse_stragglers(os::now_ns());
      hosts_.on_time(os::now_ns());
      session_.on_time(os::now_ns());
      look_after_control();
      pass_on_broken_output();
    }
    control_.reset();
    for (auto& [key, prefixer] : prefixers_) queue(key.second).add(prefixer.finish());
    return session_.status();
  }

  // Whoever reads may be slow; signals are ordinary again meanwhile. `status`: of the job. Returns
  // that of the launcher, which says so where output was lost.
  int blocking_flush(int status) {
    signals_.reset();
    out_.blocking_flush();
    const bool lost = out_.broken() != 0 && out_.broken() != EPIPE;
    if (lost) say(why_not_written(out_.broken()));
    err_.blocking_flush();
    constexpr int exit_bad_input = 2;
    if (lost) return exit_bad_input;
    // As of a program that writes when nobody reads any more: the nodes may have ended before.
    return out_.broken() == EPIPE && status == 0 ? 128 + SIGPIPE : status;
  }

  // node_listener
  void on_frame(node_id node, const frame& f) override { session_.on_frame(node, f, os::now_ns()); }
  void on_line_ended(node_id node, const std::string& why) override {
    session_.on_line_ended(node, why, os::now_ns());
  }
  void on_ended(node_id node, node_end how) override { session_.on_ended(node, how, os::now_ns()); }
  void on_output(node_id node, output_stream stream, std::string_view bytes) override {
    if (!what_.prefix) return queue(stream).add(bytes);
    const auto [found, is_new] = prefixers_.try_emplace({node, stream}, prefix_of(node));
    queue(stream).add(bytes.empty() ? found->second.finish() : found->second.add(bytes));
  }
  void on_note(const std::string& text) override { say(text); }
  void on_host_lost(const std::vector<node_id>& nodes, const std::string& why, bool user) override {
    session_.on_host_lost(nodes, why, user, os::now_ns());
  }

  // job_actions
  void send(node_id node, const std::string& frame_bytes) override {
    hosts_.send(node, frame_bytes);
  }
  void signal_all(int number) override { hosts_.signal(number); }
  void say(const std::string& line) override {
    queue(output_stream::err).add("strata run: " + line + "\n");
  }
  late_place spawn(node_id node, ticket who, const std::vector<node_id>& gone) override {
    return hosts_.start_late(node, wishes_.at(who), gone);
  }
  void end(node_id node) override { hosts_.end(node); }
  void joined(ticket who, node_id node) override {
    control_->joined(who, node);
    if (wishes_.at(who).what.nodes == 0) wishes_.erase(who);
  }
  void left(ticket who, node_id node) override { control_->left(who, node); }
  void denied(ticket who, const std::string& why) override {
    control_->denied(who, why);
    wishes_.erase(who);
  }

 private:
  static session::description describe(const run_request& what,
                                       const std::vector<std::uint16_t>& host_of,
                                       const std::vector<placed_host>& hosts) {
    session::description d;
    d.nodes = static_cast<node_id>(what.nodes);
    d.program = std::filesystem::path(what.program).filename();
    d.start_limit_ns = what.start_limit_ns;
    d.capacity = static_cast<node_id>(what.capacity);
    // The first argument is the program itself.
    d.asks_for_help =
        std::any_of(what.arguments.begin() + 1, what.arguments.end(), [](const std::string& a) {
          return a == "--help" || a == "-h" || a == "--version" || a == "--strata-help";
        });
    if (!hosts[0].local || hosts.size() > 1) {
      for (const std::uint16_t h : host_of) d.on_host.push_back(" on " + hosts[h].name);
    }
    return d;
  }

  static std::string prefix_of(node_id node) {
    std::string text = "[";
    text += std::to_string(node);
    return text += "] ";
  }

  // One queue for one place: a line that two write to would be cut where the first has to wait.
  output_queue& queue(output_stream stream) {
    return stream == output_stream::out || outputs_are_one_ ? out_ : err_;
  }

  void on_ask_join(ticket who, const join_request& what) {
    try {
      hosts_.check(what);  // before it costs the job a number
    } catch (const std::exception& problem) {
      return control_->denied(who, problem.what());
    }
    wishes_.emplace(who, late_wish{what});
    session_.ask_join(who, what.nodes, os::now_ns());
  }

  void open_control() {
    control_ = std::make_unique<control_socket>(
        loop_, job_folder::create(), name_,
        control_socket::listener{
            [this] { return status(); },
            [this](ticket who, const join_request& what) { on_ask_join(who, what); },
            [this](ticket who, node_id node) { session_.ask_leave(who, node); }});
  }

  [[nodiscard]] job_status status() const {
    const std::vector<node_id> members = session_.members();
    return {std::filesystem::path(what_.program).filename(),
            os::to_ranges(std::vector<int>(members.begin(), members.end())),
            static_cast<std::uint32_t>(::getpid())};
  }

  void look_after_control() {
    if (control_ == nullptr) return;
    control_->on_time(os::now_ns());
    if (!announced_ && session_.is_running()) {
      announced_ = true;
      say("job " + name_ + " is open: strata join " + name_);
    }
  }

  void on_signal(const signalfd_siginfo& info) {
    const int number = static_cast<int>(info.ssi_signo);
    if (number == SIGTSTP)
      return of_kernel(info) && !processes_.overseen() ? refuse_pause() : pause_job();
    if (number == SIGCONT && !std::exchange(has_paused_, false)) note_stop();
    group_has(info) ? hosts_.signal_others(number) : hosts_.signal(number);
    // SIGQUIT makes nodes say who waits for what, and go on.
    if (number == SIGINT || number == SIGTERM || number == SIGHUP) {
      session_.on_interrupt(number, os::now_ns());
    }
  }

  // The terminal's are.
  static bool of_kernel(const signalfd_siginfo& info) { return info.ssi_code == SI_KERNEL; }

  // The terminal signals every process of its group. But that it hangs up the kernel tells the
  // leader of its session alone, and nodes that were started after a signal do not have it.
  bool group_has(const signalfd_siginfo& info) {
    const int number = static_cast<int>(info.ssi_signo);
    const bool came_at_start = ::sigismember(&at_start_, number) == 1;
    ::sigdelset(&at_start_, number);
    const bool for_leader_alone = number == SIGHUP && ::getsid(0) == ::getpid();
    return of_kernel(info) && !for_leader_alone && !came_at_start;
  }

  // Nobody could continue us. The kernel lets Ctrl-Z stop no process of such a group, but it knows
  // the guard, in another group of our session, as the nodes' parent, and has stopped all of ours.
  static void refuse_pause() { ::kill(0, SIGCONT); }

  // SIGSTOP, because some kernels' rules let a process without a terminal ignore SIGTSTP.
  void pause_job() {
    signal_all(SIGSTOP);
    const std::int64_t stopped_ns = os::now_ns();
    ::raise(SIGSTOP);
    postpone(os::now_ns() - stopped_ns);
    has_paused_ = true;
    signal_all(SIGCONT);
  }

  // By others: where a node reads the terminal in the background the kernel stops the whole group.
  // For how much of the time nobody tells; it may be all.
  void note_stop() {
    const std::int64_t now_ns = os::now_ns();
    postpone(now_ns - std::exchange(looked_ns_, now_ns));
  }

  void postpone(std::int64_t ns) {
    session_.postpone(ns);
    if (control_ != nullptr) control_->postpone(ns);
  }

  // A program that writes into a pipe that nobody reads gets SIGPIPE; we stand between the two.
  // Where there is no room for what it writes, it need not go on either.
  void pass_on_broken_output() {
    if (out_.broken() == 0 || broken_) return;
    broken_ = true;
    const int number = out_.broken() == EPIPE ? SIGPIPE : SIGTERM;
    signal_all(number);
    session_.on_interrupt(number, os::now_ns());
  }

  const run_request& what_;
  std::int64_t looked_ns_ = os::now_ns();  // when we last looked for times that have passed
  event_loop loop_;
  children processes_;
  session session_;
  const bool outputs_are_one_ = lead_to_one_place(STDOUT_FILENO, STDERR_FILENO);
  output_queue out_, err_;
  std::unique_ptr<signal_events> signals_;
  std::string name_;
  job_hosts hosts_;
  sigset_t at_start_{};  // signals that came before all nodes of the beginning had been started
  std::map<std::pair<node_id, output_stream>, line_prefixer> prefixers_;
  bool broken_ = false;
  bool has_paused_ = false;  // and knows for how long; the SIGCONT that ended it is still to come
  // Of an elastic job:
  std::unique_ptr<control_socket> control_;
  std::map<ticket, late_wish> wishes_;
  bool announced_ = false;
};

}  // namespace

int run_job(const run_request& what, inherited_state& inherited) {
  std::vector<std::uint16_t> host_of;
  const std::vector<placed_host> hosts = place(what, host_of);
  inherited.make_room(descriptors_for(what, hosts));
  launcher one(what, inherited, new_job(what, std::move(host_of)), hosts);
  return one.blocking_flush(one.run());
}

}  // namespace strata::launcher
