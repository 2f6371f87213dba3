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

void act(node& self, const std::string& action, const std::string& value) {
  if (action == "join") {
    self.join();
  } else if (action == "meet") {
    self.meet();
  } else if (action == "enter") {
    self.enter();
  } else if (action == "elastic") {
    self.take_part(std::atoi(value.c_str()));
  } else if (action == "build") {
    self.build = value;
  } else if (action == "wait") {
    self.wait();
  } else if (action == "outlast") {
    self.outlast();
  } else if (action == "describe") {
    self.describe();
  } else if (action == "show-key") {
    self.show_key();
  } else if (action == "finish") {
    self.line->close();
  } else if (action == "drop") {
    self.line.reset();
  } else if (action == "exit") {
    std::_Exit(std::atoi(value.c_str()));
  } else if (action == "raise") {
    const rlimit none{0, 0};
    ::setrlimit(RLIMIT_CORE, &none);
    std::signal(std::atoi(value.c_str()), SIG_DFL);
    ::raise(std::atoi(value.c_str()));
  } else if (action == "stop-parent") {
    stop_parent();
  } else if (action == "parent") {
    ::kill(::getppid(), std::atoi(value.c_str()));
  } else if (action == "grandparent") {  // the launcher, or the agent of a host
    ::kill(parent_of(::getppid()), std::atoi(value.c_str()));
  } else if (action == "group") {
    std::printf("group %d\n", static_cast<int>(::getpgrp()));
    std::fflush(stdout);
  } else if (action == "pid") {
    std::printf("pid %d\n", static_cast<int>(::getpid()));
    std::fflush(stdout);
  } else if (action == "ignore") {
    std::signal(std::atoi(value.c_str()), SIG_IGN);
  } else if (action == "catch") {  // and end, like a program that tidies up
    self.await(std::atoi(value.c_str()), true);
  } else if (action == "report") {  // that it has come, and go on
    self.await(std::atoi(value.c_str()), false);
  } else if (action == "sleep") {
    self.sleep();
  } else if (action == "print") {
    std::printf("%s\n", value.c_str());
    std::fflush(stdout);
  } else if (action == "complain") {
    std::fprintf(stderr, "%s\n", value.c_str());
  } else if (action == "mumble") {  // no end of line
    std::fputs(value.c_str(), stdout);
    std::fflush(stdout);
  } else if (action == "lines") {
    for (int i = 0; i < std::atoi(value.c_str()); ++i) {
      std::printf("line %d of node %s, long enough to be torn apart by carelessness\n", i,
                  self.number.c_str());
    }
    std::fflush(stdout);
  } else if (action == "input") {
    for (int c = 0; (c = std::getchar()) != EOF;) std::putchar(c);
    std::fflush(stdout);
  } else if (action == "variable") {
    const char* const text = std::getenv(value.c_str());
    std::printf("%s=%s\n", value.c_str(), text != nullptr ? text : "(none)");
    std::fflush(stdout);
  } else if (action == "orphan") {
    if (::fork() == 0) {
      while (true) ::poll(nullptr, 0, -1);
    }
  } else if (action.rfind("marker", 0) != 0) {
    std::fprintf(stderr, "unknown action %s\n", action.c_str());
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
