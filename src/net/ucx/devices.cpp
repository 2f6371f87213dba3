// SPDX-License-Identifier: Apache-2.0
#include "net/ucx/devices.hpp"

#include <ifaddrs.h>
#include <net/if.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/errno_error.hpp"
#include "launch/socket_address.hpp"

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
    if (address == launch::to_numeric(i->ifa_addr)) return i->ifa_name;
  }
  throw error("no network device of this machine has the address " + address);
}

std::string devices_behind(const std::string& interface, const std::string& interfaces) {
  // A second address of one may be called as if it had another ("eth0:1").
  const std::string name = interface.substr(0, interface.find(':'));
  const std::filesystem::path at = std::filesystem::path(interfaces) / name;
  unsigned port = 0;
  std::ifstream(at / "dev_port") >> port;
  std::vector<std::string> ports;
  std::error_code none;
  for (const auto& device : std::filesystem::directory_iterator(at / "device/infiniband", none))
    ports.push_back(device.path().filename().string() + ":" + std::to_string(port + 1));
  std::sort(ports.begin(), ports.end());
  std::string all;
  for (const std::string& p : ports) all += p + ",";
  return all + name;
}

bool listens_on_any_port() {
  const char* const range = std::getenv("UCX_TCP_PORT_RANGE");
  if (range != nullptr && std::string_view(range) != "0") return false;
  const char* const kinds = std::getenv("UCX_TLS");
  if (kinds == nullptr) return true;
  // A list of those that it may use, or after ^ of those that it may not.
  std::string list = kinds;
  const bool without = list.starts_with('^');
  if (without) list.erase(0, 1);
  list = "," + list + ",";
  const bool named = list.find(",tcp,") != std::string::npos ||
                     (!without && list.find(",all,") != std::string::npos);
  return named != without;
}

}  // namespace strata::net::ucx
