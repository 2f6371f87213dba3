// SPDX-License-Identifier: Apache-2.0
// A node that does as its arguments say, one after the other: "[@NODE:]ACTION[:VALUE]". It knows
// the line to the launcher and nothing else of the library.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "launch/build_id.hpp"
#include "launch/job.hpp"
#include "strata/error.hpp"

namespace {

using strata::launch::address;
using strata::launch::control_line;
using strata::launch::word_to_launcher;

struct node {
  std::unique_ptr<control_line> line;
  std::string build = strata::launch::build_id();
  std::string number = "0";

  void join() {
    line = control_line::open();
    if (line == nullptr) return;
    const auto& job = line->job();
    const address mine{job.bind_address, static_cast<std::uint16_t>(1000 + job.node)};
    everybody = line->exchange(mine, build);
    for (std::size_t n = 0; n < everybody.size(); ++n) {
      const bool gone = std::count(job.left.begin(), job.left.end(), n) != 0;
      if (everybody[n].port != (gone ? 0 : 1000 + n)) std::abort();
    }
  }

  void enter() {
    if (line->job().late) line->say(word_to_launcher::entered, line->job().node);
  }

  void tell(const char* what, strata::launch::node_id about) const {
    std::printf("node %s %s %u\n", number.c_str(), what, unsigned{about});
    std::fflush(stdout);
  }

  // A member whose job nodes join and leave. Ends when it is let go, and at SIGUSR1 (which must be
  // awaited by then). `stays`: so often it does not go yet.
  void take_part(int stays) {
    std::thread ender([this] {
      sigset_t set;
      sigemptyset(&set);
      sigaddset(&set, SIGUSR1);
      int got = 0;
      sigwait(&set, &got);
      line->close();
    });
    ender.detach();
    const strata::launch::node_id mine = line->job().node;
    std::set<strata::launch::node_id> late;
    strata::launch::job_news news;
    news.lost = [&](strata::launch::node_id who, const std::string& why) {
      std::printf("node %s: node %u %s\n", number.c_str(), unsigned{who}, why.c_str());
      std::fflush(stdout);
      if (!late.contains(who)) std::_Exit(7);
    };
    news.admit = [&](strata::launch::node_id who, std::uint16_t, const address&) {
      late.insert(who);
      tell("admits", who);
      line->say(word_to_launcher::admitted, who);
    };
    news.leave = [&] { line->say(word_to_launcher::drained, mine); };
    news.go = [&] {
      if (stays-- <= 0) return line->close();
      line->say(word_to_launcher::stays, mine);
      line->say(word_to_launcher::drained, mine);
    };
    if (line->wait(news)) std::_Exit(8);
  }

  // Joins with a port that is really there, and connects to every node.
  void meet() {
    line = control_line::open();
    const int listening = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in here{};
    here.sin_family = AF_INET;
    ::inet_pton(AF_INET, line->job().bind_address.c_str(), &here.sin_addr);
    socklen_t bytes = sizeof here;
    auto* const any = reinterpret_cast<sockaddr*>(&here);
    if (::bind(listening, any, bytes) != 0 || ::listen(listening, 64) != 0) std::perror("listen");
    ::getsockname(listening, any, &bytes);
    everybody = line->exchange({line->job().bind_address, ntohs(here.sin_port)}, build);
    std::size_t met = 0;
    for (const address& other : everybody) {
      const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
      ::inet_pton(AF_INET, other.host.c_str(), &here.sin_addr);
      here.sin_port = htons(other.port);
      if (::connect(fd, any, bytes) == 0) ++met;
    }
    // Whoever leaves earlier could not be met any more. Those who were there before a late node
    // connect to nobody.
    for (std::size_t i = 0; i < met && !line->job().late; ++i) {
      ::accept(listening, nullptr, nullptr);
    }
    std::printf("node %s met %zu\n", number.c_str(), met);
    std::fflush(stdout);
  }

  // Until somebody is lost or the launcher is gone.
  void wait() {
    const auto lost = [&](strata::launch::node_id who, const std::string& why) {
      std::printf("node %s: node %u %s\n", number.c_str(), unsigned{who}, why.c_str());
      std::fflush(stdout);
      std::_Exit(7);
    };
    const bool gone = line->wait({lost});
    if (gone) std::_Exit(8);
  }

  // Until the launcher is gone, and goes on.
  void outlast() {
    const bool gone = line->wait({[](strata::launch::node_id, const std::string&) {}});
    std::printf("line %s\n", gone ? "ended" : "closed");
    std::fflush(stdout);
  }

  // Signals are waited for, not handled: the thread sanitizer may keep a handler back for ever.
  void await(int signal, bool ends) {
    sigaddset(&awaited, signal);
    if (ends) sigaddset(&ending, signal);
    sigprocmask(SIG_BLOCK, &awaited, nullptr);
  }

  void sleep() const {
    while (true) {
      int got = 0;
      sigwait(&awaited, &got);
      if (sigismember(&ending, got) == 1) std::_Exit(40);
      std::printf("S%02d\n", got);
      std::fflush(stdout);
    }
  }

  void describe() const {
    const auto& job = line->job();
    std::printf("node %u of %u host %u workers %u cpus", unsigned{job.node}, unsigned{job.nodes},
                unsigned{job.host_of[job.node]}, job.workers);
    for (const int cpu : job.cpus) std::printf(" %d", cpu);
    std::printf(" at %s memory %s\n", everybody[job.node].host.c_str(),
                job.shared_memory >= 0 ? "yes" : "no");
    std::fflush(stdout);
  }

  // In hexadecimal, for a test that looks where else it is.
  void show_key() const {
    std::printf("key ");
    for (const unsigned byte : line->job().key) std::printf("%02x", byte);
    std::printf(" shown\n");
    std::fflush(stdout);
  }

  node() {
    sigemptyset(&awaited);
    sigemptyset(&ending);
  }

  std::vector<address> everybody;
  sigset_t awaited, ending;
};

pid_t parent_of(pid_t process) {
  std::ifstream in("/proc/" + std::to_string(process) + "/status");
  for (std::string word; in >> word;) {
    if (word == "PPid:" && in >> word) return std::atoi(word.c_str());
  }
  std::abort();
}

// The guard, until somebody continues it. The kernel would, when the launcher has ended: so it does
// with a stopped process of a group in which nobody has a parent outside it, in its session. A
// child of ours in the guard's group has.
void stop_parent() {
  const pid_t child = ::fork();
  if (child == 0) {
    for (;;) ::pause();
  }
  if (child < 0 || ::setpgid(child, ::getpgid(::getppid())) != 0) std::abort();
  ::kill(::getppid(), SIGSTOP);
}

void raise_signal(int signal) {
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  std::signal(signal, SIG_DFL);
  ::raise(signal);
}

void print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

void print_lines(const node& self, int count) {
  for (int i = 0; i < count; ++i) {
    std::printf("line %d of node %s, long enough to be torn apart by carelessness\n", i,
                self.number.c_str());
  }
  std::fflush(stdout);
}

void echo_input() {
  for (int c = 0; (c = std::getchar()) != EOF;) std::putchar(c);
  std::fflush(stdout);
}

void leave_orphan() {
  if (::fork() != 0) return;
  while (true) ::poll(nullptr, 0, -1);
}

int number_of(const std::string& value) { return std::atoi(value.c_str()); }

// The second argument: VALUE.
using action = void (*)(node&, const std::string&);
const std::map<std::string, action> actions = {
    {"join", [](node& self, const std::string&) { self.join(); }},
    {"meet", [](node& self, const std::string&) { self.meet(); }},
    {"enter", [](node& self, const std::string&) { self.enter(); }},
    {"elastic", [](node& self, const std::string& value) { self.take_part(number_of(value)); }},
    {"build", [](node& self, const std::string& value) { self.build = value; }},
    {"wait", [](node& self, const std::string&) { self.wait(); }},
    {"outlast", [](node& self, const std::string&) { self.outlast(); }},
    {"describe", [](node& self, const std::string&) { self.describe(); }},
    {"show-key", [](node& self, const std::string&) { self.show_key(); }},
    {"finish", [](node& self, const std::string&) { self.line->close(); }},
    {"drop", [](node& self, const std::string&) { self.line.reset(); }},
    {"exit", [](node&, const std::string& value) { std::_Exit(number_of(value)); }},
    {"raise", [](node&, const std::string& value) { raise_signal(number_of(value)); }},
    {"stop-parent", [](node&, const std::string&) { stop_parent(); }},
    {"parent", [](node&, const std::string& value) { ::kill(::getppid(), number_of(value)); }},
    // The launcher, or the agent of a host.
    {"grandparent",
     [](node&, const std::string& value) { ::kill(parent_of(::getppid()), number_of(value)); }},
    {"group",
     [](node&, const std::string&) { print("group " + std::to_string(::getpgrp()) + "\n"); }},
    {"pid", [](node&, const std::string&) { print("pid " + std::to_string(::getpid()) + "\n"); }},
    {"ignore", [](node&, const std::string& value) { std::signal(number_of(value), SIG_IGN); }},
    // And end, like a program that tidies up.
    {"catch", [](node& self, const std::string& value) { self.await(number_of(value), true); }},
    // That it has come, and go on.
    {"report", [](node& self, const std::string& value) { self.await(number_of(value), false); }},
    {"sleep", [](node& self, const std::string&) { self.sleep(); }},
    {"print", [](node&, const std::string& value) { print(value + "\n"); }},
    {"complain",
     [](node&, const std::string& value) { std::fprintf(stderr, "%s\n", value.c_str()); }},
    {"mumble", [](node&, const std::string& value) { print(value); }},  // no end of line
    {"lines", [](node& self, const std::string& value) { print_lines(self, number_of(value)); }},
    {"input", [](node&, const std::string&) { echo_input(); }},
    {"variable",
     [](node&, const std::string& value) {
       const char* const found = std::getenv(value.c_str());
       print(value + "=" + (found != nullptr ? found : "(none)") + "\n");
     }},
    {"orphan", [](node&, const std::string&) { leave_orphan(); }},
};

void act(node& self, const std::string& name, const std::string& value) {
  if (const auto found = actions.find(name); found != actions.end()) {
    found->second(self, value);
  } else if (name.rfind("marker", 0) != 0) {
    std::fprintf(stderr, "unknown action %s\n", name.c_str());
    std::_Exit(99);
  }
}

}  // namespace

int main(int argc, char** argv) {
  node self;
  if (const char* const number = std::getenv("STRATA_NODE")) self.number = number;
  try {
    for (int i = 1; i < argc; ++i) {
      std::string text = argv[i];
      if (text[0] == '@') {
        const auto colon = text.find(':');
        if (text.substr(1, colon - 1) != self.number) continue;
        text.erase(0, colon + 1);
      }
      const auto colon = text.find(':');
      act(self, text.substr(0, colon), colon == std::string::npos ? "" : text.substr(colon + 1));
    }
  } catch (const strata::error& problem) {
    std::fprintf(stderr, "node %s: %s\n", self.number.c_str(), problem.what());
    return 9;
  }
  return 0;
}
