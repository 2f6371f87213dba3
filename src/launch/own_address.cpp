// SPDX-License-Identifier: Apache-2.0
#include "launch/own_address.hpp"

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <fstream>
#include <memory>
#include <numeric>
#include <optional>

#include "base/errno_error.hpp"
#include "base/shortened.hpp"
#include "base/values.hpp"
#include "launch/socket_address.hpp"
#include "strata/error.hpp"

namespace strata::launch {

namespace {

std::vector<std::string> addresses_of_own_name() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  ::gethostname(name.data(), HOST_NAME_MAX);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(name.data(), nullptr, &hints, &found) != 0) return {};
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, &::freeaddrinfo);
  std::vector<std::string> all;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next)
    all.push_back(to_numeric(one->ai_addr));
  return all;
}

unsigned prefix_bits(const sockaddr* mask) {
  if (mask == nullptr) return 0;
  const auto bits_in = [](const void* address, std::size_t bytes) {
    const auto* const first = static_cast<const std::uint8_t*>(address);
    return std::accumulate(first, first + bytes, 0U, [](unsigned sum, std::uint8_t byte) {
      return sum + static_cast<unsigned>(std::popcount(byte));
    });
  };
  if (mask->sa_family == AF_INET)
    return bits_in(&reinterpret_cast<const sockaddr_in*>(mask)->sin_addr, sizeof(in_addr));
  return bits_in(&reinterpret_cast<const sockaddr_in6*>(mask)->sin6_addr, sizeof(in6_addr));
}

bool begins_alike(const std::vector<std::uint8_t>& a, const std::vector<std::uint8_t>& b,
                  unsigned count) {
  if (a.size() != b.size()) return false;
  for (unsigned bit = 0; bit < count; ++bit) {
    const unsigned mask = 0x80U >> bit % 8;
    if (((a[bit / 8] ^ b[bit / 8]) & mask) != 0) return false;
  }
  return true;
}

const network_address* first_alike(const std::vector<network_address>& all,
                                   const std::vector<std::uint8_t>& wanted, unsigned count) {
  for (const network_address& one : all) {
    const auto bits = bits_of(one.numeric);
    if (bits && begins_alike(*bits, wanted, count)) return &one;
  }
  return nullptr;
}

// What the driver says; virtual interfaces mostly do not know.
std::uint32_t megabits_of(const std::string& interface) {
  std::int64_t speed = 0;
  std::ifstream("/sys/class/net/" + interface + "/speed") >> speed;
  return speed > 0 && speed <= UINT32_MAX ? static_cast<std::uint32_t>(speed) : 0;
}

std::string all_of(const std::vector<network_address>& all) {
  std::string text;
  for (const network_address& one : all) {
    if (!text.empty()) text += ", ";
    text += one.numeric + " (" + one.interface + ")";
  }
  return text;
}

}  // namespace

std::vector<network_address> own_addresses() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) throw errno_error("cannot list the network interfaces", errno);
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, &::freeifaddrs);
  std::vector<network_address> all;
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || (one->ifa_flags & IFF_UP) == 0) continue;
    const int family = one->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    const std::string numeric = to_numeric(one->ifa_addr);
    // One that is good on one link only would have to be told with the link's name.
    if (numeric.empty() || numeric.find('%') != std::string::npos) continue;
    all.push_back({one->ifa_name, numeric, (one->ifa_flags & IFF_LOOPBACK) != 0,
                   megabits_of(one->ifa_name), prefix_bits(one->ifa_netmask),
                   (one->ifa_flags & IFF_RUNNING) != 0});
  }
  // An address of the older kind works everywhere.
  std::stable_partition(all.begin(), all.end(), [](const network_address& one) {
    return one.numeric.find(':') == std::string::npos;
  });
  return all;
}

std::string chosen_address(const std::vector<network_address>& all, const std::string& words) {
  const auto refuse = [&](const std::string& what) {
    return user_error("bind-address: " + what + "; this host has " + all_of(all));
  };
  const auto slash = words.find('/');
  const auto wanted = bits_of(words.substr(0, slash));
  if (!wanted) {
    for (const network_address& one : all) {
      if (one.interface == words) return one.numeric;
    }
    throw refuse(in_quotes(words) + " is no address, network or interface of this host");
  }
  auto count = static_cast<unsigned>(8 * wanted->size());
  if (slash != std::string::npos) {
    try {
      count = static_cast<unsigned>(parse_whole(words.substr(slash + 1), 0, count));
    } catch (const user_error& problem) {
      throw refuse(words + ": " + problem.what());
    }
  }
  if (const network_address* const one = first_alike(all, *wanted, count)) return one->numeric;
  throw refuse("no interface has " + words);
}

std::optional<network_address> address_within(const std::vector<network_address>& all,
                                              const std::string& network) {
  const network_prefix wanted = prefix_of(network);
  const network_address* const one = first_alike(all, wanted.bits, wanted.count);
  return one != nullptr ? std::optional(*one) : std::nullopt;
}

std::vector<own_network> networks_of(const std::vector<network_address>& all) {
  const network_prefix given_by_itself = prefix_of("169.254.0.0/16");
  std::vector<own_network> found;
  for (const network_address& one : all) {
    const auto bits = bits_of(one.numeric);
    if (!bits || one.loopback || !one.running || one.prefix == 0 || one.prefix >= 8 * bits->size())
      continue;
    if (begins_alike(*bits, given_by_itself.bits, given_by_itself.count)) continue;
    const std::string range = range_of(one.numeric, one.prefix);
    if (std::none_of(found.begin(), found.end(),
                     [&](const own_network& n) { return n.range == range; }))
      found.push_back({range, one});
  }
  return found;
}

std::string reachable_address(const std::vector<network_address>& all,
                              const std::vector<std::string>& by_name) {
  const network_address* first = nullptr;
  for (const network_address& one : all) {
    if (one.loopback) continue;
    // Many hosts know their own name as a loopback address, which is of no use to the others.
    if (std::find(by_name.begin(), by_name.end(), one.numeric) != by_name.end()) return one.numeric;
    if (first == nullptr) first = &one;
  }
  if (first != nullptr) return first->numeric;
  throw user_error(
      "this host has no address at which the other hosts of the job reach it; set "
      "STRATA_BIND_ADDRESS");
}

std::string listening_address(const std::string& words, bool one_host) {
  if (!words.empty()) return chosen_address(own_addresses(), words);
  if (one_host) return "127.0.0.1";
  return reachable_address(own_addresses(), addresses_of_own_name());
}

}  // namespace strata::launch
