// SPDX-License-Identifier: Apache-2.0
// Memory that may not be there is read, or not, and nothing faults.
#include "os/safe_read.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>

#include "os/pages.hpp"

namespace strata::os {
namespace {

// Two pages, of which the second cannot be read.
class edge : public testing::Test {
 protected:
  edge() {
    void* const both = ::mmap(nullptr, 2 * page_bytes(), PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(both, MAP_FAILED);
    first = static_cast<char*>(both);
    end = first + page_bytes();
    EXPECT_EQ(::mprotect(end, page_bytes(), PROT_NONE), 0);
  }
  ~edge() override { ::munmap(first, 2 * page_bytes()); }

  char* first;
  char* end;
};

TEST_F(edge, is_where_reading_ends) {
  int here = 0;
  const int there = 7;
  EXPECT_TRUE(safe_read(&here, &there, sizeof here));
  EXPECT_EQ(here, 7);
  EXPECT_TRUE(safe_read(&here, end - sizeof here, sizeof here));
  EXPECT_FALSE(safe_read(&here, end - 1, sizeof here));
  EXPECT_FALSE(safe_read(&here, end, sizeof here));
}

TEST_F(edge, cuts_texts_that_have_no_end_before_it) {
  EXPECT_EQ(safe_text("abc", 100), "abc");
  EXPECT_EQ(safe_text("", 100), "");
  EXPECT_EQ(safe_text("a text of more characters than are read at once", 20),
            "a text of more chara");
  EXPECT_EQ(safe_text(nullptr, 100), "");
  EXPECT_EQ(safe_text(end, 100), "");
  // To the page's last byte.
  for (const char* const text :
       {"x", "fifteen letters", "more than the sixteen bytes of one look"}) {
    const std::size_t n = std::strlen(text);
    std::memcpy(end - n - 1, text, n + 1);
    EXPECT_EQ(safe_text(end - n - 1, 100), text);
    end[-1] = '!';
    EXPECT_EQ(safe_text(end - n - 1, 100), std::string(text) + "!");
  }
}

}  // namespace
}  // namespace strata::os
