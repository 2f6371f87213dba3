// SPDX-License-Identifier: Apache-2.0
#include "tools/strata/launcher.hpp"

#include <sys/random.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <utility>

#include "base/errno_error.hpp"
#include "os/clock.hpp"
#include "tools/strata/addresses.hpp"
#include "tools/strata/local_nodes.hpp"
#include "tools/strata/output.hpp"
#include "tools/strata/remote_nodes.hpp"
#include "tools/strata/session.hpp"
#include "tools/strata/signals.hpp"

namespace strata::launch {

namespace {

// Beyond it the nodes have to wait with their output.
constexpr std::size_t waiting_bytes_max = 1 << 20;
// A host with what the launcher found out about it.
struct placed_host {
  std::string name;
  bool local = true;
  std::string bind_address = "127.0.0.1";
  std::vector<node_id> nodes;
};

std::string without_user(const std::string& name) { return name.substr(name.find('@') + 1); }

std::vector<placed_host> place(const run_request& what, std::vector<std::uint16_t>& host_of) {
  const std::vector<host>& hosts = what.hosts;
  host_of =
      hosts.empty() ? std::vector<std::uint16_t>(what.nodes, 0) : place_nodes(hosts, what.nodes);
  std::vector<placed_host> placed(host_of.back() + 1U);
  const bool several = placed.size() > 1;
  std::string remote_address;
  for (std::size_t h = 0; h < hosts.size() && h < placed.size(); ++h) {
    placed_host& p = placed[h];
    p.name = hosts[h].name;
    const std::string numeric =
        resolve(hosts[h].address.empty() ? without_user(p.name) : hosts[h].address);
    p.local = p.name.find('@') == std::string::npos && is_this_machine(p.name, numeric);
    if (several) p.bind_address = numeric;
    if (!p.local) remote_address = numeric;
  }
  for (placed_host& p : placed) {
    // Many machines know their own name as a loopback address, which is of no use to the others.
    if (several && p.local && is_loopback(p.bind_address) && !is_loopback(remote_address)) {
      p.bind_address = source_address_towards(remote_address);
      if (p.bind_address.empty()) {
        throw user_error("no way from here to " + remote_address + "; add address=A to " + p.name);
      }
    }
  }
  if (!what.bind_address.empty()) {
    if (several) {
      throw user_error("--bind-address is for one host; give address=A in the hostfile instead");
    }
    placed[0].bind_address = resolve(what.bind_address);
  }
  if (several && what.transport == transport_choice::shm) {
    throw user_error("--transport shm works within one host; leave it out");
  }
  for (std::size_t node = 0; node < host_of.size(); ++node) {
    placed[host_of[node]].nodes.push_back(static_cast<node_id>(node));
  }
  return placed;
}

void fill_with_randomness(void* to, std::size_t bytes) {
  // So few bytes come at once or not at all.
  if (::getrandom(to, bytes, 0) != static_cast<ssize_t>(bytes)) {
    throw errno_error("cannot make a key for the job", errno);
  }
}

class launcher final : public node_listener, public session::hands {
 public:
  launcher(const run_request& what, inherited_state& inherited, std::vector<std::uint16_t> host_of,
           const std::vector<placed_host>& hosts)
      : what_(what),
        processes_(inherited),
        session_(describe(what, host_of, hosts), *this, os::now_ns()),
        out_(loop_, STDOUT_FILENO),
        err_(loop_, STDERR_FILENO),
        signals_(std::make_unique<signal_events>(
            loop_,
            std::initializer_list<int>{SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT,
                                       SIGUSR1, SIGUSR2},
            [this](const signalfd_siginfo& info) { on_signal(info); })) {
    job_.nodes = job_.capacity = static_cast<node_id>(what.nodes);
    job_.host_of = host_of_ = std::move(host_of);
    job_.transport = what.transport;
    job_.start_limit_ns = what.start_limit_ns;
    fill_with_randomness(&job_.job, sizeof job_.job);
    fill_with_randomness(job_.key.data(), job_.key.size());
    for (const placed_host& p : hosts) {
      if (p.local) {
        hosts_.push_back({std::make_unique<local_nodes>(loop_, processes_, *this, -1), true});
      } else {
        hosts_.push_back(
            {std::make_unique<remote_nodes>(loop_, processes_, *this, p.name, remote_command()),
             false});
      }
    }
    // A start that fails here fails before another host has heard of it.
    for (const bool local : {true, false}) {
      for (std::size_t h = 0; h < hosts.size(); ++h) {
        if (hosts[h].local == local) start(*hosts_[h].nodes, hosts[h]);
      }
    }
  }

  int run() {
    while (!session_.over()) {
      loop_.run_once(session_.deadline_ns());
      session_.on_time(os::now_ns());
      pass_on_broken_output();
      const bool full =
          out_.bytes_waiting() > waiting_bytes_max || err_.bytes_waiting() > waiting_bytes_max;
      for (const auto& h : hosts_) h.nodes->pause_output(full);
    }
    for (auto& [key, prefixer] : prefixers_) queue(key.second).add(prefixer.finish());
    return session_.status();
  }

  // Whoever reads may be slow; signals are ordinary again meanwhile.
  void blocking_flush() {
    signals_.reset();
    out_.blocking_flush();
    err_.blocking_flush();
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

  // session::hands
  void send(node_id node, const std::string& frame_bytes) override {
    hosts_[host_of_[node]].nodes->send(node, frame_bytes);
  }
  void signal_all(int number) override {
    for (const auto& h : hosts_) h.nodes->signal(number);
  }
  void say(const std::string& line) override { err_.add("strata run: " + line + "\n"); }

 private:
  struct one_host {
    std::unique_ptr<host_nodes> nodes;
    bool local;
  };

  static session::description describe(const run_request& what,
                                       const std::vector<std::uint16_t>& host_of,
                                       const std::vector<placed_host>& hosts) {
    session::description d;
    d.nodes = static_cast<node_id>(what.nodes);
    d.program = std::filesystem::path(what.program).filename();
    d.start_limit_ns = what.start_limit_ns;
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

  output_queue& queue(output_stream stream) { return stream == output_stream::out ? out_ : err_; }

  void start(host_nodes& nodes, const placed_host& p) {
    start_request request;
    request.program = what_.program;
    request.arguments = what_.arguments;
    request.variables = what_.variables;
    request.directory = p.local ? "" : std::filesystem::current_path().string();
    request.job = job_;
    request.job.bind_address = p.bind_address;
    request.nodes = p.nodes;
    request.workers = what_.workers;
    request.bind = what_.bind;
    request.print_binding = what_.print_binding;
    request.capture_output = what_.prefix;
    nodes.start(request);
  }

  void on_signal(const signalfd_siginfo& info) {
    const int number = static_cast<int>(info.ssi_signo);
    switch (number) {
      case SIGCHLD:
        return processes_.reap();
      case SIGTSTP:
        return pause_job();
      default:
        break;
    }
    // The terminal signals every process of its group: the nodes here have it already.
    const bool from_terminal = info.ssi_code == SI_KERNEL;
    for (const auto& h : hosts_) {
      if (!(h.local && from_terminal)) h.nodes->signal(number);
    }
    if (number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGQUIT) {
      session_.on_interrupt(number, os::now_ns());
    }
  }

  // SIGSTOP, because some kernels' rules let a process without a terminal ignore SIGTSTP.
  void pause_job() {
    signal_all(SIGSTOP);
    const std::int64_t stopped_ns = os::now_ns();
    ::raise(SIGSTOP);
    session_.postpone(os::now_ns() - stopped_ns);
    signal_all(SIGCONT);
  }

  // A program that writes into a pipe that nobody reads gets SIGPIPE; we stand between the two.
  void pass_on_broken_output() {
    if (!out_.broken() || broken_) return;
    broken_ = true;
    signal_all(SIGPIPE);
    session_.on_interrupt(SIGPIPE, os::now_ns());
  }

  const run_request& what_;
  event_loop loop_;
  children processes_;
  session session_;
  output_queue out_, err_;
  std::unique_ptr<signal_events> signals_;
  job_description job_;
  std::vector<std::uint16_t> host_of_;
  std::vector<one_host> hosts_;
  std::map<std::pair<node_id, output_stream>, line_prefixer> prefixers_;
  bool broken_ = false;
};

}  // namespace

int run_job(const run_request& what, inherited_state& inherited) {
  std::vector<std::uint16_t> host_of;
  const std::vector<placed_host> hosts = place(what, host_of);
  inherited.make_room(what.nodes * (what.prefix ? descriptors_with_output : 1));
  launcher job(what, inherited, std::move(host_of), hosts);
  const int status = job.run();
  job.blocking_flush();
  return status;
}

}  // namespace strata::launch
