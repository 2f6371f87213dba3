// SPDX-License-Identifier: Apache-2.0
#include "os/quota.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <string>

#include "os/topology.hpp"

namespace {

namespace fs = std::filesystem;
using strata::os::read_cpu_quota;

// A folder that looks like /sys/fs/cgroup.
class quota_test : public testing::Test {
 protected:
  void SetUp() override {
    mount_ = fs::path(testing::TempDir()) /
             (std::string("strata_quota_") +
              testing::UnitTest::GetInstance()->current_test_info()->name() + "_" +
              std::to_string(::getpid()));
    fs::remove_all(mount_);
    fs::create_directories(mount_);
  }
  void TearDown() override { fs::remove_all(mount_); }
  void write(const std::string& file, const std::string& text) {
    const fs::path path = mount_ / file;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text << '\n';
  }
  [[nodiscard]] double cores(const std::string& proc_self_cgroup) const {
    return read_cpu_quota(proc_self_cgroup, mount_).cores;
  }
  fs::path mount_;
};

TEST_F(quota_test, nothing_readable_limits_nothing) {
  EXPECT_TRUE(std::isinf(cores("")));
  EXPECT_TRUE(std::isinf(cores("nonsense\n0::/a\n1:cpu\n")));
  EXPECT_TRUE(read_cpu_quota("0::/\n", mount_).source.empty());
}

TEST_F(quota_test, v2_own_group) {
  write("user/job/cpu.max", "150000 100000");
  const auto quota = read_cpu_quota("0::/user/job\n", mount_);
  EXPECT_DOUBLE_EQ(quota.cores, 1.5);
  EXPECT_EQ(quota.source, mount_ / "user/job/cpu.max");
}

TEST_F(quota_test, v2_max_is_no_limit) {
  write("user/job/cpu.max", "max 100000");
  EXPECT_TRUE(std::isinf(cores("0::/user/job\n")));
}

TEST_F(quota_test, v2_the_smallest_limit_above_counts) {
  write("user/cpu.max", "50000 100000");
  write("user/job/cpu.max", "400000 100000");
  EXPECT_DOUBLE_EQ(cores("0::/user/job\n"), 0.5);
  EXPECT_DOUBLE_EQ(cores("0::/user/job/deeper/still\n"), 0.5);
}

TEST_F(quota_test, v2_in_a_container_that_sees_its_hosts_path) {
  write("cpu.max", "200000 100000");
  EXPECT_DOUBLE_EQ(cores("0::/docker/0123456789abcdef\n"), 2);
  EXPECT_DOUBLE_EQ(cores("0::/../../other\n"), 2);
}

TEST_F(quota_test, v2_nonsense_limits_nothing) {
  for (const char* text : {"", "-1 100000", "0 0", "100000 0", "many few", "nan nan"}) {
    write("cpu.max", text);
    EXPECT_TRUE(std::isinf(cores("0::/\n"))) << text;
  }
  write("cpu.max", "300000");  // the period is 100 ms unless it is said
  EXPECT_DOUBLE_EQ(cores("0::/\n"), 3);
}

TEST_F(quota_test, v1) {
  write("cpu,cpuacct/job/cpu.cfs_quota_us", "250000");
  write("cpu,cpuacct/job/cpu.cfs_period_us", "50000");
  write("cpu,cpuacct/cpu.cfs_quota_us", "-1");
  write("cpu,cpuacct/cpu.cfs_period_us", "100000");
  const std::string lines = "5:memory:/job\n4:cpuacct,cpu:/job\n3:cpuset:/job\n";
  EXPECT_DOUBLE_EQ(cores(lines), 5);
  EXPECT_EQ(read_cpu_quota(lines, mount_).source, mount_ / "cpu,cpuacct/job/cpu.cfs_quota_us");
  EXPECT_TRUE(std::isinf(cores("3:cpuset:/job\n")));
}

TEST_F(quota_test, both_versions_at_once) {
  write("cpu/job/cpu.cfs_quota_us", "100000");
  write("cpu/job/cpu.cfs_period_us", "100000");
  write("unified/job/cpu.max", "50000 100000");
  EXPECT_DOUBLE_EQ(cores("1:cpu:/job\n0::/job\n"), 0.5);
}

TEST(quota, of_this_process_can_be_read) { EXPECT_GT(read_cpu_quota().cores, 0); }

TEST(workers_for, follows_the_mask_and_the_whole_cores_of_the_quota) {
  using strata::os::workers_for;
  constexpr double none = std::numeric_limits<double>::infinity();
  EXPECT_EQ(workers_for(8, none), 8u);
  EXPECT_EQ(workers_for(8, 3), 3u);
  EXPECT_EQ(workers_for(2, 3), 2u);
  EXPECT_EQ(workers_for(8, 1.9), 1u);
  EXPECT_EQ(workers_for(8, 0.5), 1u);
  EXPECT_EQ(workers_for(1, none), 1u);
  EXPECT_EQ(workers_for(0, none), 1u);
}

}  // namespace
