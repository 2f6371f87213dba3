// SPDX-License-Identifier: Apache-2.0
#include "os/shared_page.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <memory>

#include "os/pages.hpp"

namespace {

using strata::os::may_be_shared;

int static_word = 1;

// A page of memory, written once unless it is only read.
class mapped_page {
 public:
  mapped_page(int flags, int fd, bool writes = true)
      : at_(::mmap(nullptr, strata::os::page_bytes(), PROT_READ | PROT_WRITE, flags, fd, 0)) {
    if (at_ == MAP_FAILED) return;
    volatile int& first = *static_cast<int*>(at_);
    if (writes)
      first = 1;
    else
      (void)int{first};
  }
  ~mapped_page() {
    if (at_ != MAP_FAILED) ::munmap(at_, strata::os::page_bytes());
  }
  mapped_page(const mapped_page&) = delete;
  mapped_page& operator=(const mapped_page&) = delete;
  [[nodiscard]] bool may_be_shared() const { return strata::os::may_be_shared(at_); }

 private:
  void* const at_;
};

class shared_page : public testing::Test {
 protected:
  void SetUp() override {
    if (::access("/proc/thread-self/pagemap", R_OK) != 0)
      GTEST_SKIP() << "the system does not tell: no /proc/thread-self/pagemap";
    ASSERT_EQ(::ftruncate(file_, static_cast<off_t>(strata::os::page_bytes())), 0);
  }
  ~shared_page() override { ::close(file_); }
  const int file_ = ::memfd_create("strata-test", MFD_CLOEXEC);
};

TEST_F(shared_page, memory_of_the_process_alone_is_told) {
  const int local = 1;
  const auto allocated = std::make_unique<int>(1);
  static_word = 2;
  EXPECT_FALSE(may_be_shared(&local));
  EXPECT_FALSE(may_be_shared(allocated.get()));
  EXPECT_FALSE(may_be_shared(&static_word));
  EXPECT_FALSE(mapped_page(MAP_PRIVATE | MAP_ANONYMOUS, -1).may_be_shared());
  EXPECT_FALSE(mapped_page(MAP_PRIVATE | MAP_ANONYMOUS, -1, false).may_be_shared());
}

TEST_F(shared_page, memory_that_processes_share_is_told) {
  EXPECT_TRUE(mapped_page(MAP_SHARED | MAP_ANONYMOUS, -1).may_be_shared());
  EXPECT_TRUE(mapped_page(MAP_SHARED, file_).may_be_shared());
  EXPECT_TRUE(mapped_page(MAP_SHARED, file_, false).may_be_shared());
}

TEST_F(shared_page, a_copy_of_a_file_is_the_processs_own_once_written) {
  EXPECT_FALSE(mapped_page(MAP_PRIVATE, file_).may_be_shared());
}

TEST(shared_page_unknown, what_is_not_there_may_be_anybodys) {
  // Reserved for the kernel.
  EXPECT_TRUE(may_be_shared(reinterpret_cast<const void*>(~std::uintptr_t{0} << 12)));
}

}  // namespace
