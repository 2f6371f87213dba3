// SPDX-License-Identifier: Apache-2.0
#include "tools/strata/hosts/addresses.hpp"

#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <memory>

#include "launch/socket_address.hpp"
#include "os/descriptor.hpp"
#include "strata/error.hpp"
#include "tools/strata/events/shared_names.hpp"

namespace strata::launcher {

namespace {

using address_list = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

address_list look_up(const std::string& name, int flags, int& code) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* found = nullptr;
  code = ::getaddrinfo(name.c_str(), nullptr, &hints, &found);
  return {found, &::freeaddrinfo};
}

}  // namespace

std::string resolve(const std::string& name) {
  int code = 0;
  const address_list found = look_up(name, 0, code);
  if (code != 0) {
    throw user_error("the host " + name + " has no address: " + ::gai_strerror(code));
  }
  // An address of the older kind works everywhere.
  const addrinfo* best = found.get();
  for (const addrinfo* one = best; one != nullptr; one = one->ai_next) {
    if (one->ai_family == AF_INET) {
      best = one;
      break;
    }
  }
  return to_numeric(best->ai_addr);
}

bool is_this_machine(const std::string& name, const std::string& numeric_address) {
  std::array<char, HOST_NAME_MAX + 1> own{};
  ::gethostname(own.data(), HOST_NAME_MAX);
  if (name == "localhost" || name == own.data()) return true;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return false;
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, &::freeifaddrs);
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr) continue;
    const int family = one->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    if (to_numeric(one->ifa_addr) == numeric_address) return true;
  }
  return false;
}

std::string source_address_towards(const std::string& numeric_address) {
  int code = 0;
  const address_list target = look_up(numeric_address, AI_NUMERICHOST, code);
  if (code != 0) return {};
  // Connecting a datagram socket sends nothing; it chooses the way.
  const os::descriptor socket(::socket(target->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_storage own{};
  socklen_t bytes = sizeof own;
  const auto* const there = target->ai_addr;
  auto* const here = reinterpret_cast<sockaddr*>(&own);
  if (target->ai_family == AF_INET) {
    reinterpret_cast<sockaddr_in*>(target->ai_addr)->sin_port = htons(9);
  } else {
    reinterpret_cast<sockaddr_in6*>(target->ai_addr)->sin6_port = htons(9);
  }
  if (!socket || ::connect(socket.get(), there, target->ai_addrlen) != 0 ||
      ::getsockname(socket.get(), here, &bytes) != 0) {
    return {};
  }
  return to_numeric(here);
}

bool is_numeric_address(const std::string& text) {
  int code = 0;
  return !text.empty() && look_up(text, AI_NUMERICHOST, code) != nullptr;
}

bool is_loopback(const std::string& numeric_address) {
  return numeric_address.starts_with("127.") || numeric_address == "::1";
}

bool is_unspecified(const std::string& numeric_address) {
  return numeric_address == "0.0.0.0" || numeric_address == "::" ||
         numeric_address == "::ffff:0.0.0.0";
}

}  // namespace strata::launcher
