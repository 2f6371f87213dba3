// SPDX-License-Identifier: Apache-2.0
// Which devices UCX gets for a network that the user has named.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "net/ucx/devices.hpp"

namespace strata::net::ucx {
namespace {

// As the system tells of its interfaces.
class devices : public testing::Test {
 protected:
  devices() {
    std::string name = (std::filesystem::temp_directory_path() / "strata-devices-XXXXXX").string();
    if (::mkdtemp(name.data()) != nullptr) all_ = name;
  }
  ~devices() override { std::filesystem::remove_all(all_); }
  void add(const std::string& interface, const std::string& device, unsigned port) const {
    std::filesystem::create_directories(all_ / interface / "device/infiniband" / device);
    std::ofstream(all_ / interface / "dev_port") << port << '\n';
  }
  [[nodiscard]] std::string behind(const std::string& interface) const {
    return devices_behind(interface, all_.string());
  }
  std::filesystem::path all_;
};

TEST_F(devices, of_a_plain_interface_are_itself) {
  std::filesystem::create_directories(all_ / "eth0/device");
  EXPECT_EQ(behind("eth0"), "eth0");
  EXPECT_EQ(behind("veth7"), "veth7");  // nothing is known of it
}

TEST_F(devices, that_read_memory_come_first) {
  add("ib0", "mlx5_0", 0);
  add("ib1", "mlx4_0", 1);
  EXPECT_EQ(behind("ib0"), "mlx5_0:1,ib0");
  EXPECT_EQ(behind("ib1"), "mlx4_0:2,ib1");
}

TEST_F(devices, are_found_by_the_name_of_a_second_address_too) {
  add("ib0", "mlx5_0", 0);
  EXPECT_EQ(behind("ib0:1"), "mlx5_0:1,ib0");
}

TEST(device_of, loopback_is_the_interface_that_has_it) {
  EXPECT_EQ(device_of("127.0.0.1"), device_of("127.0.0.2"));
}

// As told by these values of its variables; null: not set.
bool listens(const char* kinds, const char* ports = nullptr) {
  const auto set = [](const char* name, const char* value) {
    value != nullptr ? ::setenv(name, value, 1) : ::unsetenv(name);
  };
  set("UCX_TLS", kinds);
  set("UCX_TCP_PORT_RANGE", ports);
  const bool result = listens_on_any_port();
  set("UCX_TLS", nullptr);
  set("UCX_TCP_PORT_RANGE", nullptr);
  return result;
}

TEST(ucx_listens_on_any_port, unless_its_variables_say_otherwise) {
  for (const char* const with : {"tcp", "rc,tcp", "all", "^rc", "^tcpx"})
    EXPECT_TRUE(listens(with)) << with;
  for (const char* const without : {"rc", "rc,ud", "^tcp", "^ud,tcp", "tcpx"})
    EXPECT_FALSE(listens(without)) << without;
  EXPECT_TRUE(listens(nullptr));
  EXPECT_TRUE(listens(nullptr, "0"));
  EXPECT_FALSE(listens(nullptr, "30000-30100"));
}

}  // namespace
}  // namespace strata::net::ucx
