// SPDX-License-Identifier: Apache-2.0
#include "strata/options.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <span>
#include <vector>

#include "base/leading_flags.hpp"
#include "base/networks.hpp"
#include "base/standard_output.hpp"
#include "base/transport_choice.hpp"
#include "base/values.hpp"
#include "strata/error.hpp"

extern char** environ;

namespace strata {

namespace {

constexpr unsigned workers_max = 4096;
constexpr std::size_t stack_bytes_min = 16 << 10;
constexpr std::size_t stack_bytes_max = 1 << 30;
constexpr unsigned spin_us_max = 1'000'000;
constexpr unsigned preempt_us_min = 100;
constexpr unsigned preempt_us_max = 10'000'000;
constexpr unsigned node_max = 65'535;

constexpr unsigned watchdog_us_min = 10;
constexpr unsigned watchdog_us_max = 10'000'000;
constexpr unsigned lost_after_ms_min = 100;
constexpr unsigned lost_after_ms_max = 3'600'000;
constexpr unsigned stall_s_max = 86'400;
constexpr unsigned remeasure_s_max = 86'400;
constexpr unsigned start_limit_s_max = 86'400;
constexpr unsigned shelf_max = 8;
constexpr std::size_t socket_bytes_min = 4 << 10;
constexpr std::size_t socket_bytes_max = 64 << 20;

using choices = std::span<const std::string_view>;
constexpr std::string_view launches[] = {"auto", "none", "pmix"};
constexpr std::string_view receptions[] = {"adaptive", "blocking", "polling", "watchdog"};
constexpr std::string_view balancings[] = {"random", "sender", "informed"};
constexpr std::string_view policies[] = {"steal", "rotator", "locked"};
constexpr std::string_view socket_ios[] = {"non-blocking", "blocking"};
constexpr std::string_view rendezvous_modes[] = {"auto", "always", "never"};
constexpr std::string_view dump_signals[] = {"none", "QUIT", "USR1", "USR2", "HUP"};
constexpr std::string_view socket_polls[] = {"automatic", "recv", "epoll", "poll", "select"};

constexpr std::string_view flag_prefix = "--strata-";
constexpr std::string_view variable_prefix = "STRATA_";

bool is_one_of(std::string_view text, choices allowed) {
  return std::find(allowed.begin(), allowed.end(), text) != allowed.end();
}

std::string parse_choice(std::string_view text, choices allowed) {
  if (is_one_of(text, allowed)) return std::string(text);
  std::string all;
  for (const std::string_view one : allowed) all += (all.empty() ? "" : ", ") + std::string(one);
  throw user_error("'" + std::string(text) + "' is not a choice; the choices are: " + all);
}

// One row of the table that everything else here walks: flags, variables, keys of a file, help.
struct setting {
  const char* name;
  const char* value;  // what it takes, for the help; null: a switch, whose flag may stand alone
  const char* help;
  void (*set)(options&, std::string_view);
};

constexpr setting settings[] = {
    {"workers", "N", "worker threads, 1 to 4096 (default: what affinity and CPU quota allow)",
     [](options& o, std::string_view t) {
       o.workers = static_cast<unsigned>(parse_whole(t, 1, workers_max));
     }},
    {"stack-bytes", "SIZE", "stack of each task, 16K to 1G (default 256K)",
     [](options& o, std::string_view t) {
       o.stack_bytes = parse_bytes(t, stack_bytes_min, stack_bytes_max);
     }},
    {"bind", nullptr, "bind each worker to one CPU (default yes)",
     [](options& o, std::string_view t) { o.bind = parse_switch(t); }},
    {"stats", nullptr, "print times and counts when the runtime stops (default no)",
     [](options& o, std::string_view t) { o.stats = parse_switch(t); }},
    {"profile", nullptr, "measure work and span (default no)",
     [](options& o, std::string_view t) { o.profile = parse_switch(t); }},
    {"preempt-us", "N",
     "microseconds after which a preemptible thread gives way to others (default 10000)",
     [](options& o, std::string_view t) {
       o.preempt_us = static_cast<unsigned>(parse_whole(t, preempt_us_min, preempt_us_max));
     }},
    {"spin-us", "N",
     "microseconds an idle worker begins to search for before it sleeps (default 50)",
     [](options& o, std::string_view t) {
       o.spin_us = static_cast<unsigned>(parse_whole(t, 0, spin_us_max));
     }},
    {"policy", "NAME", "how ready tasks are distributed: steal (default), rotator, locked",
     [](options& o, std::string_view t) { o.policy = parse_choice(t, policies); }},
    {"node", "N", "number of this node in a job, 0 to 65535 (default 0)",
     [](options& o, std::string_view t) {
       o.node = static_cast<unsigned>(parse_whole(t, 0, node_max));
     }},
    {"launch", "NAME", "join the job that srun or mpirun has made: auto (default), none, pmix",
     [](options& o, std::string_view t) { o.launch = parse_choice(t, launches); }},
    {"transport", "NAME",
     "how nodes of such a job talk: auto (default), shm, tcp, ucx, udp, shm+tcp, shm+ucx, "
     "shm+udp",
     [](options& o, std::string_view t) { o.transport = parse_choice(t, transport_names); }},
    {"bind-address", "WHERE",
     "where they listen: an address, a network (10.1.0.0/16), an interface",
     [](options& o, std::string_view t) { o.bind_address = t; }},
    {"start-limit-s", "N", "seconds until all of its nodes must have joined (default 30)",
     [](options& o, std::string_view t) {
       o.start_limit_s = static_cast<unsigned>(parse_whole(t, 1, start_limit_s_max));
     }},
    {"reception", "MODE",
     "how messages are noticed: adaptive (default), blocking, polling, watchdog",
     [](options& o, std::string_view t) { o.reception = parse_choice(t, receptions); }},
    {"watchdog-us", "N", "microseconds until the watchdog looks for messages (default 1000)",
     [](options& o, std::string_view t) {
       o.watchdog_us = static_cast<unsigned>(parse_whole(t, watchdog_us_min, watchdog_us_max));
     }},
    {"receiver-spin-us", "N", "microseconds a receiver looks for more before it sleeps (default 0)",
     [](options& o, std::string_view t) {
       o.receiver_spin_us = static_cast<unsigned>(parse_whole(t, 0, spin_us_max));
     }},
    {"balancing", "NAME", "tokens between nodes: random (default), sender, informed",
     [](options& o, std::string_view t) { o.balancing = parse_choice(t, balancings); }},
    {"shelf", "N", "tokens a node offers to others of its host, 0 to 8 (default 8)",
     [](options& o, std::string_view t) {
       o.shelf = static_cast<unsigned>(parse_whole(t, 0, shelf_max));
     }},
    {"lost-after-ms", "N", "milliseconds of silence until a node is lost (default 30000)",
     [](options& o, std::string_view t) {
       o.lost_after_ms =
           static_cast<unsigned>(parse_whole(t, lost_after_ms_min, lost_after_ms_max));
     }},
    {"stall-s", "N",
     "seconds without progress until all say who waits for what (default 60; 0: never)",
     [](options& o, std::string_view t) {
       o.stall_s = static_cast<unsigned>(parse_whole(t, 0, stall_s_max));
     }},
    {"networks", "LIST",
     "networks between hosts, \"10.1.0.0/16,ucx:10.2.0.0/16\", or auto: those that the nodes find "
     "(default: the launcher's)",
     [](options& o, std::string_view t) {
       o.networks = t;
       (void)networks_in(o.networks, network_kind::tcp);
     }},
    {"remeasure-s", "N", "seconds until several networks are measured again (default 30; 0: never)",
     [](options& o, std::string_view t) {
       o.remeasure_s = static_cast<unsigned>(parse_whole(t, 0, remeasure_s_max));
     }},
    {"socket-bytes", "SIZE", "buffers of each TCP socket, 4K to 64M (default: the system's)",
     [](options& o, std::string_view t) {
       o.socket_bytes = parse_bytes(t, socket_bytes_min, socket_bytes_max);
     }},
    {"socket-io", "MODE", "how sockets are written: non-blocking (default), blocking",
     [](options& o, std::string_view t) { o.socket_io = parse_choice(t, socket_ios); }},
    {"socket-poll", "NAME",
     "how sockets are watched: automatic (default), recv, epoll, poll, select",
     [](options& o, std::string_view t) { o.socket_poll = parse_choice(t, socket_polls); }},
    {"rendezvous", "WHEN",
     "large messages over UCX from memory to memory: auto (default: by devices), always, never",
     [](options& o, std::string_view t) { o.rendezvous = parse_choice(t, rendezvous_modes); }},
    {"dump-signal", "NAME",
     "signal that prints what all threads do: none (default), QUIT, USR1, USR2, HUP",
     [](options& o, std::string_view t) { o.dump_signal = parse_choice(t, dump_signals); }},
    {"detect-deadlock", nullptr, "name threads that wait for each other's mutexes (default no)",
     [](options& o, std::string_view t) { o.detect_deadlock = parse_switch(t); }},
    {"print-binding", nullptr, "print at the start which worker runs where (default no)",
     [](options& o, std::string_view t) { o.print_binding = parse_switch(t); }},
};

// "stack-bytes" to "STRATA_STACK_BYTES".
std::string variable_of(std::string_view name) {
  std::string text(variable_prefix);
  for (const char c : name)
    text += c == '-' ? '_' : static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  return text;
}

// "STACK_BYTES" or "stack_bytes" to "stack-bytes".
std::string key_of(std::string_view spelled) {
  std::string text(spelled);
  for (char& c : text)
    c = c == '_' ? '-' : c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

const setting* find_setting(std::string_view name) {
  for (const setting& one : settings) {
    if (name == one.name) return &one;
  }
  return nullptr;
}

// The last words of a complaint about an unknown name, which is given without its prefix and in the
// spelling of the table; `spell` turns the table's names into what the user should have typed.
template <class Spell>
std::string did_you_mean(std::string_view typed, Spell spell) {
  std::vector<std::string> names{"config", "help"};
  for (const setting& one : settings) names.emplace_back(one.name);
  std::string text;
  for (const std::string& name : nearest(typed, names)) {
    text += (text.empty() ? "; did you mean " : " or ") + spell(name);
  }
  return text + (text.empty() ? "; " : "? ") + "--strata-help lists them all";
}

// A value and where the user wrote it.
struct given {
  const setting* what;
  std::string value;
  std::string where;
};

void set_all(options& target, const std::vector<given>& values) {
  for (const given& one : values) {
    try {
      one.what->set(target, one.value);
    } catch (const user_error& problem) {
      throw user_error(one.where + ": " + problem.what());
    }
  }
}

struct flags {
  std::vector<given> values;
  std::string config;
  bool help = false;
  std::vector<char*> rest;  // what stays in argv
};

// One word of a command line that begins with flag_prefix, and the next where that is its value.
struct given_flag {
  const setting* what = nullptr;  // null: is_config or is_help
  bool is_config = false;
  bool is_help = false;
  std::string flag;
  std::string value;
};

// That at arguments[i]; `i` is then the last word of it.
given_flag read_flag(std::span<char*> arguments, std::size_t& i) {
  const std::string_view argument = arguments[i];
  const auto equals = argument.find('=');
  given_flag result;
  result.flag = argument.substr(0, equals);
  const std::string_view name = std::string_view(result.flag).substr(flag_prefix.size());
  result.is_config = name == "config";
  result.is_help = name == "help";
  if (result.is_help) return result;
  result.what = find_setting(name);
  if (result.what == nullptr && !result.is_config) {
    throw user_error("unknown flag " + result.flag + did_you_mean(name, [](const std::string& n) {
                       return std::string(flag_prefix) + n;
                     }));
  }
  if (equals != std::string_view::npos) {
    result.value = argument.substr(equals + 1);
  } else if (result.is_config || result.what->value != nullptr) {
    if (i + 1 == arguments.size())
      throw user_error(result.flag + " needs a value; --strata-help says which");
    result.value = arguments[++i];
  } else {
    result.value = "yes";
  }
  if (result.is_config && result.value.empty())
    throw user_error(result.flag + " needs the name of a file");
  return result;
}

flags read_flags(std::span<char*> arguments) {
  flags result;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view argument = arguments[i];
    if (argument == "--") {
      result.rest.insert(result.rest.end(), arguments.begin() + static_cast<std::ptrdiff_t>(i),
                         arguments.end());
      break;
    }
    if (i == 0 || !argument.starts_with(flag_prefix)) {
      result.rest.push_back(arguments[i]);
      continue;
    }
    const given_flag one = read_flag(arguments, i);
    if (one.is_help) {
      result.help = true;
    } else if (one.is_config) {
      result.config = one.value;
    } else {
      result.values.push_back({one.what, one.value, one.flag});
    }
  }
  return result;
}

std::vector<given> read_variables() {
  std::vector<given> result;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const auto equals = text.find('=');
    const std::string name(text.substr(0, equals));
    // The last two belong to the launcher.
    if (!name.starts_with(variable_prefix) || equals == std::string_view::npos ||
        name == "STRATA_CONFIG" || name == "STRATA_JOB_FD" || name == "STRATA_SSH")
      continue;
    const std::string key = key_of(name.substr(variable_prefix.size()));
    const setting* what = find_setting(key);
    if (what == nullptr || name != variable_of(what->name)) {
      std::fprintf(stderr, "strata: ignoring the unknown variable %s%s\n", name.c_str(),
                   did_you_mean(key, variable_of).c_str());
    } else if (equals + 1 < text.size()) {
      result.push_back({what, std::string(text.substr(equals + 1)), name});
    }
  }
  return result;
}

// Lines "key = value"; '#' begins a comment; a key may be written with _ for -.
std::vector<given> read_file(const std::string& path) {
  std::ifstream in(path);
  if (!in) throw user_error("cannot read the configuration file " + path);
  std::vector<given> result;
  std::string line;
  for (unsigned number = 1; std::getline(in, line); ++number) {
    const std::string_view text = trimmed(std::string_view(line).substr(0, line.find('#')));
    if (text.empty()) continue;
    const std::string where = path + ":" + std::to_string(number);
    const auto equals = text.find('=');
    if (equals == std::string_view::npos) {
      throw user_error(where + ": '" + std::string(text) + "' is not of the form key = value");
    }
    const std::string key = key_of(trimmed(text.substr(0, equals)));
    const setting* what = find_setting(key);
    if (what == nullptr) {
      const auto same = [](const std::string& n) { return n; };
      throw user_error(where + ": unknown key '" + key + "'" + did_you_mean(key, same));
    }
    result.push_back({what, std::string(trimmed(text.substr(equals + 1))), where + ": " + key});
  }
  // A directory opens and then cannot be read.
  if (in.bad()) throw user_error("cannot read the configuration file " + path);
  return result;
}

void print_help() {
  std::puts(
      "Flags of the Strata runtime (each is also a variable and a key of a configuration file):");
  for (const setting& one : settings) {
    const std::string flag =
        std::string(flag_prefix) + one.name + (one.value ? std::string(" ") + one.value : "[=no]");
    std::printf("  %-28s %-22s %s\n", flag.c_str(), variable_of(one.name).c_str(), one.help);
  }
  std::printf("  %-28s %-22s %s\n", "--strata-config FILE", "STRATA_CONFIG",
              "file with lines 'key = value', # comments");
  std::printf("  %-28s %-22s %s\n", "--strata-help", "", "this table");
  std::puts("Flag beats variable beats file beats default; of one given twice the last counts.");
  flush_standard_output();
}

}  // namespace

leading_flags read_leading_flags(std::span<char*> arguments) {
  leading_flags result;
  std::vector<given> values;
  for (std::size_t i = 0; i < arguments.size(); result.words = ++i) {
    if (!std::string_view(arguments[i]).starts_with(flag_prefix)) break;
    const given_flag one = read_flag(arguments, i);
    if (one.is_help) {
      print_help();
      std::exit(EXIT_SUCCESS);
    }
    if (!one.is_config) values.push_back({one.what, one.value, one.flag});
    result.variables.emplace_back(
        one.is_config ? std::string(variable_prefix) + "CONFIG" : variable_of(one.what->name),
        one.value);
  }
  options nobody_has_them;
  set_all(nobody_has_them, values);
  return result;
}

options options::parse(int& argc, char** argv) {
  const flags from_flags = read_flags(std::span(argv, static_cast<std::size_t>(argc)));
  if (from_flags.help) {
    print_help();
    std::exit(EXIT_SUCCESS);
  }
  options result;
  const char* variable = std::getenv("STRATA_CONFIG");
  const std::string config = !from_flags.config.empty() ? from_flags.config
                             : variable != nullptr      ? variable
                                                        : "";
  if (!config.empty()) set_all(result, read_file(config));
  set_all(result, read_variables());
  set_all(result, from_flags.values);

  argc = 0;
  for (char* kept : from_flags.rest) argv[argc++] = kept;
  argv[argc] = nullptr;
  return result;
}

void options::validate() const {
  const auto refuse = [](const std::string& what) {
    throw misuse_error("strata::options: " + what);
  };
  if (workers > workers_max) refuse("workers is " + std::to_string(workers) + ", more than 4096");
  if (stack_bytes < stack_bytes_min || stack_bytes > stack_bytes_max) {
    refuse("stack_bytes is " + bytes_to_text(stack_bytes) + ", not from 16K to 1G");
  }
  if (spin_us > spin_us_max)
    refuse("spin_us is " + std::to_string(spin_us) + ", more than 1000000");
  if (preempt_us < preempt_us_min || preempt_us > preempt_us_max)
    refuse("preempt_us is " + std::to_string(preempt_us) + ", not from 100 to 10000000");
  if (node > node_max) refuse("node is " + std::to_string(node) + ", more than 65535");
  const auto refuse_unless = [&](const char* name, const std::string& value, choices allowed) {
    if (!is_one_of(value, allowed)) refuse(std::string(name) + " is '" + value + "'");
  };
  const auto refuse_outside = [&](const char* name, std::uint64_t value, std::uint64_t least,
                                  std::uint64_t most) {
    if (value < least || value > most)
      refuse(std::string(name) + " is " + std::to_string(value) + ", not from " +
             std::to_string(least) + " to " + std::to_string(most));
  };
  refuse_unless("launch", launch, launches);
  refuse_unless("transport", transport, transport_names);
  refuse_outside("start_limit_s", start_limit_s, 1, start_limit_s_max);
  refuse_unless("reception", reception, receptions);
  refuse_unless("balancing", balancing, balancings);
  refuse_unless("policy", policy, policies);
  refuse_unless("socket_io", socket_io, socket_ios);
  refuse_unless("socket_poll", socket_poll, socket_polls);
  refuse_unless("rendezvous", rendezvous, rendezvous_modes);
  refuse_unless("dump_signal", dump_signal, dump_signals);
  try {
    (void)networks_in(networks, network_kind::tcp);
  } catch (const user_error& problem) {
    refuse(std::string("networks: ") + problem.what());
  }
  refuse_outside("watchdog_us", watchdog_us, watchdog_us_min, watchdog_us_max);
  refuse_outside("receiver_spin_us", receiver_spin_us, 0, spin_us_max);
  refuse_outside("shelf", shelf, 0, shelf_max);
  refuse_outside("remeasure_s", remeasure_s, 0, remeasure_s_max);
  refuse_outside("stall_s", stall_s, 0, stall_s_max);
  refuse_outside("lost_after_ms", lost_after_ms, lost_after_ms_min, lost_after_ms_max);
  if (socket_bytes != 0)
    refuse_outside("socket_bytes", socket_bytes, socket_bytes_min, socket_bytes_max);
}

}  // namespace strata
