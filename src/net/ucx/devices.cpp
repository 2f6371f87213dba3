// SPDX-License-Identifier: Apache-2.0
#include "net/ucx/devices.hpp"

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>

#include <array>
#include <cerrno>
#include <memory>

#include "base/errno_error.hpp"

namespace strata::net::ucx {

std::string device_of(const std::string& address) {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) throw errno_error("cannot list the network devices", errno);
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, &::freeifaddrs);
  // All of 127.0.0.0/8 is one device's, whichever of it that device has been given.
  const bool loopback = address.starts_with("127.");
  for (const ifaddrs* i = list; i != nullptr; i = i->ifa_next) {
    if (i->ifa_addr == nullptr || (i->ifa_flags & IFF_UP) == 0) continue;
    if (loopback && (i->ifa_flags & IFF_LOOPBACK) != 0) return i->ifa_name;
    const int family = i->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    const socklen_t bytes = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    std::array<char, NI_MAXHOST> text{};
    if (::getnameinfo(i->ifa_addr, bytes, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) ==
            0 &&
        address == text.data()) {
      return i->ifa_name;
    }
  }
  throw error("no network device of this machine has the address " + address);
}

}  // namespace strata::net::ucx
