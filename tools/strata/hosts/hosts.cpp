// SPDX-License-Identifier: Apache-2.0
#include "tools/strata/hosts/hosts.hpp"

#include <algorithm>
#include <sstream>
#include <string_view>
#include <utility>

#include "base/shortened.hpp"
#include "base/small_text.hpp"
#include "base/values.hpp"
#include "strata/error.hpp"

namespace strata::launcher {

namespace {

void add_host(std::vector<host>& hosts, host one) {
  check_host_name(one.name);
  for (host& known : hosts) {
    if (known.name != one.name) continue;
    known.slots = std::max(known.slots, 1U) + std::max(one.slots, 1U);
    if (known.slots > nodes_max) throw user_error("more than 4096 slots on " + one.name);
    if (!known.address.empty() && !one.address.empty() && known.address != one.address)
      throw user_error(one.name + " has two addresses, " + known.address + " and " + one.address);
    if (known.address.empty()) known.address = one.address;
    return;
  }
  hosts.push_back(std::move(one));
}

unsigned parse_slots(std::string_view text) {
  return static_cast<unsigned>(parse_whole(text, 1, nodes_max));
}

}  // namespace

void check_host_name(const std::string& name) {
  const bool plain = std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return c > ' ' && c < 127 && c != ',' && c != '=' && c != '\'' && c != '"' && c != '\\';
  });
  if (name.empty() || name.front() == '-' || !plain) {
    throw user_error(in_quotes(name) + " is not the name of a host");
  }
}

std::vector<host> parse_hostfile(std::istream& in, const std::string& name) {
  std::vector<host> hosts;
  std::string line;
  for (unsigned number = 1; std::getline(in, line); ++number) {
    std::istringstream words(line.substr(0, line.find('#')));
    host one;
    if (!(words >> one.name)) continue;
    try {
      for (std::string word; words >> word;) {
        const auto equals = word.find('=');
        const std::string key = word.substr(0, equals);
        const std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
        if ((key == "slots" && one.slots != 0) || (key == "address" && !one.address.empty()))
          throw user_error(key + "= comes twice");
        if (key == "slots") {
          one.slots = parse_slots(value);
        } else if (key == "address" && !value.empty()) {
          one.address = value;
        } else {
          throw user_error(in_quotes(word) + " is not slots=N or address=A");
        }
      }
      add_host(hosts, std::move(one));
    } catch (const user_error& problem) {
      throw user_error(name + ":" + std::to_string(number) + ": " + problem.what());
    }
  }
  if (hosts.empty()) throw user_error("the hostfile " + name + " names no host");
  return hosts;
}

std::vector<host> read_hostfile(const std::string& path) {
  std::istringstream in = open_small_text(path, "the hostfile");
  return parse_hostfile(in, path);
}

std::vector<host> parse_host_list(const std::string& text) {
  std::vector<host> hosts;
  std::istringstream in(text + ",");
  for (std::string word; std::getline(in, word, ',');) {
    host one;
    // One colon separates the slots; an IPv6 address has more.
    const auto colon = word.find(':');
    one.name = word;
    if (colon != std::string::npos && colon == word.rfind(':')) {
      one.name = word.substr(0, colon);
      one.slots = parse_slots(std::string_view(word).substr(colon + 1));
    }
    add_host(hosts, std::move(one));
  }
  return hosts;
}

void append_hosts(std::vector<host>& hosts, std::vector<host> more) {
  for (host& one : more) add_host(hosts, std::move(one));
}

std::vector<std::uint16_t> place_nodes(const std::vector<host>& hosts, unsigned nodes) {
  std::vector<std::uint16_t> host_of;
  const bool said = std::any_of(hosts.begin(), hosts.end(), [](const host& h) { return h.slots; });
  const std::size_t used = std::min<std::size_t>(hosts.size(), nodes);
  for (std::size_t h = 0; h < hosts.size() && host_of.size() < nodes; ++h) {
    const std::size_t takes =
        said ? std::max(hosts[h].slots, 1U) : nodes / used + (h < nodes % used ? 1 : 0);
    const std::size_t left = nodes - host_of.size();
    host_of.insert(host_of.end(), std::min(takes, left), static_cast<std::uint16_t>(h));
  }
  if (host_of.size() < nodes) {
    throw user_error("the hosts take " + std::to_string(host_of.size()) + " nodes and -n says " +
                     std::to_string(nodes) + "; add hosts or slots");
  }
  return host_of;
}

}  // namespace strata::launcher
