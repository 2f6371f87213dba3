// SPDX-License-Identifier: Apache-2.0
#include "base/option_table.hpp"

#include <algorithm>
#include <cstdint>
#include <string>

#include "base/networks.hpp"
#include "base/shortened.hpp"
#include "base/transport_choice.hpp"
#include "base/values.hpp"
#include "strata/error.hpp"

namespace strata {
namespace {

constexpr std::string_view launches[] = {"auto", "none", "pmix"};
constexpr std::string_view receptions[] = {"adaptive", "blocking", "polling", "watchdog"};
constexpr std::string_view balancings[] = {"random", "sender", "informed"};
constexpr std::string_view policies[] = {"steal", "rotator", "locked"};
constexpr std::string_view socket_ios[] = {"non-blocking", "blocking"};
constexpr std::string_view rendezvous_modes[] = {"auto", "always", "never"};
constexpr std::string_view dump_signals[] = {"none", "QUIT", "USR1", "USR2", "HUP"};
constexpr std::string_view socket_polls[] = {"automatic", "recv", "epoll", "poll", "select"};

constexpr unsigned second_us = 1'000'000;
constexpr unsigned day_s = 86'400;
constexpr std::size_t kib = 1 << 10, mib = 1 << 20, gib = 1 << 30;

void check_networks(const std::string& list) { (void)networks_in(list, network_kind::tcp); }

constexpr option_row rows[] = {
    {"workers", "N", "worker threads, 1 to 4096 (default: what affinity and CPU quota allow)",
     whole_number{&options::workers, 1, 4096, true}},
    {"stack-bytes", "SIZE", "stack of each task, 16K to 1G (default 256K)",
     byte_count{&options::stack_bytes, 16 * kib, gib}},
    {"bind", "", "bind each worker to one CPU (default yes)", on_off{&options::bind}},
    {"stats", "", "print times and counts when the runtime stops (default no)",
     on_off{&options::stats}},
    {"profile", "", "measure work and span (default no)", on_off{&options::profile}},
    {"preempt-us", "N",
     "microseconds after which a preemptible thread gives way to others (default 10000)",
     whole_number{&options::preempt_us, 100, 10 * second_us}},
    {"spin-us", "N",
     "microseconds an idle worker begins to search for before it sleeps (default 50)",
     whole_number{&options::spin_us, 0, second_us}},
    {"policy", "NAME", "how ready tasks are distributed: steal (default), rotator, locked",
     one_of{&options::policy, policies}},
    {"launch", "NAME", "join the job that srun or mpirun has made: auto (default), none, pmix",
     one_of{&options::launch, launches, true}},
    {"transport", "NAME",
     "how nodes of such a job talk: auto (default), shm, tcp, ucx, udp, shm+tcp, shm+ucx, "
     "shm+udp",
     one_of{&options::transport, transport_names}},
    {"bind-address", "WHERE",
     "where they listen: an address, a network (10.1.0.0/16), an interface",
     free_text{&options::bind_address}},
    {"start-limit-s", "N", "seconds until all of its nodes must have joined (default 30)",
     whole_number{&options::start_limit_s, 1, day_s}},
    {"reception", "MODE",
     "how messages are noticed: adaptive (default), blocking, polling, watchdog",
     one_of{&options::reception, receptions}},
    {"watchdog-us", "N", "microseconds until the watchdog looks for messages (default 1000)",
     whole_number{&options::watchdog_us, 10, 10 * second_us}},
    {"receiver-spin-us", "N", "microseconds a receiver looks for more before it sleeps (default 0)",
     whole_number{&options::receiver_spin_us, 0, second_us}},
    {"balancing", "NAME", "tokens between nodes: random (default), sender, informed",
     one_of{&options::balancing, balancings}},
    {"shelf", "N", "tokens a node offers to others of its host, 0 to 8 (default 8)",
     whole_number{&options::shelf, 0, 8}},
    {"lost-after-ms", "N", "milliseconds of silence until a node is lost (default 30000)",
     whole_number{&options::lost_after_ms, 100, 3'600'000}},
    {"stall-s", "N",
     "seconds without progress until all say who waits for what (default 60; 0: never)",
     whole_number{&options::stall_s, 0, day_s}},
    {"networks", "LIST",
     "networks between hosts, \"10.1.0.0/16,ucx:10.2.0.0/16\", or auto: those that the nodes find "
     "(default: the launcher's)",
     free_text{&options::networks, &check_networks}},
    {"remeasure-s", "N", "seconds until several networks are measured again (default 30; 0: never)",
     whole_number{&options::remeasure_s, 0, day_s}},
    {"socket-bytes", "SIZE", "buffers of each TCP socket, 4K to 64M (default: the system's)",
     byte_count{&options::socket_bytes, 4 * kib, 64 * mib, true}},
    {"socket-io", "MODE", "how sockets are written: non-blocking (default), blocking",
     one_of{&options::socket_io, socket_ios}},
    {"socket-poll", "NAME",
     "how sockets are watched: automatic (default), recv, epoll, poll, select",
     one_of{&options::socket_poll, socket_polls}},
    {"rendezvous", "WHEN",
     "large messages over UCX from memory to memory: auto (default: by devices), always, never",
     one_of{&options::rendezvous, rendezvous_modes}},
    {"dump-signal", "NAME",
     "signal that prints what all threads do: none (default), QUIT, USR1, USR2, HUP",
     one_of{&options::dump_signal, dump_signals}},
    {"detect-deadlock", "", "name threads that wait for each other's mutexes (default no)",
     on_off{&options::detect_deadlock}},
    {"print-binding", "", "print at the start which worker runs where (default no)",
     on_off{&options::print_binding}},
};

bool is_one_of(std::string_view text, std::span<const std::string_view> names) {
  return std::find(names.begin(), names.end(), text) != names.end();
}

// From what a user wrote.
struct setter {
  options& to;
  std::string_view text;

  void operator()(const whole_number& n) const {
    to.*n.field = static_cast<unsigned>(parse_whole(text, n.least, n.most));
  }
  void operator()(const byte_count& n) const { to.*n.field = parse_bytes(text, n.least, n.most); }
  void operator()(const on_off& s) const { to.*s.field = parse_switch(text); }
  void operator()(const one_of& c) const {
    if (!is_one_of(text, c.names)) {
      std::string all;
      for (const std::string_view one : c.names)
        all += (all.empty() ? "" : ", ") + std::string(one);
      throw user_error(in_quotes(text) + " is not a choice; the choices are: " + all);
    }
    to.*c.field = text;
  }
  void operator()(const free_text& t) const {
    const std::string given(text);
    if (t.check != nullptr) t.check(given);
    to.*t.field = given;
  }
};

// Of what a program filled in. Each returns what is wrong with it, as the end of a sentence that
// begins with the option's name; empty: nothing.
struct checker {
  const options& of;

  template <class Kind, class Spell>
  std::string of_number(const Kind& n, Spell spell) const {
    const auto value = of.*n.field;
    if ((value >= n.least && value <= n.most) || (value == 0 && n.may_be_zero)) return {};
    return " is " + spell(value) + ", not from " + spell(n.least) + " to " + spell(n.most);
  }
  std::string operator()(const whole_number& n) const {
    return of_number(n, [](unsigned v) { return std::to_string(v); });
  }
  std::string operator()(const byte_count& n) const { return of_number(n, &bytes_to_text); }
  std::string operator()(const on_off&) const { return {}; }
  std::string operator()(const one_of& c) const {
    const std::string& value = of.*c.field;
    if (is_one_of(value, c.names) || (value.empty() && c.may_be_empty)) return {};
    return " is " + in_quotes(value);
  }
  std::string operator()(const free_text& t) const {
    try {
      if (t.check != nullptr) t.check(of.*t.field);
    } catch (const user_error& problem) {
      return std::string(": ") + problem.what();
    }
    return {};
  }
};

}  // namespace

void option_row::set(options& o, std::string_view text) const { std::visit(setter{o, text}, kind); }

void option_row::check(const options& o) const {
  const std::string wrong = std::visit(checker{o}, kind);
  if (wrong.empty()) return;
  std::string field(name);  // as a program knows it
  std::replace(field.begin(), field.end(), '-', '_');
  throw misuse_error("strata::options: " + field + wrong);
}

std::span<const option_row> option_table() noexcept { return rows; }

const option_row* find_option(std::string_view name) noexcept {
  const auto* const found =
      std::find_if(std::begin(rows), std::end(rows), [&](const auto& r) { return r.name == name; });
  return found != std::end(rows) ? found : nullptr;
}

}  // namespace strata
