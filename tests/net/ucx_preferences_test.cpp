// SPDX-License-Identifier: Apache-2.0
// What UCX is told, by the version that is loaded.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/ucx/preferences.hpp"
#include "net/ucx/ucp_library.hpp"
#include "net/ucx/worker.hpp"
#include "os/loaded_library.hpp"
#include "ucx_support.hpp"

namespace strata::net::ucx {
namespace {

// Null: it is told nothing about that.
const char* value_of(const char* variable, const std::vector<preference>& all) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const preference& p) {
    return std::string_view(p.variable) == variable;
  });
  return found == all.end() ? nullptr : found->value;
}

TEST(ucx_preferences, keep_the_old_protocols_where_the_new_ones_end_the_process) {
  for (const version good : {version{1, 13}, version{1, 15}, version{1, 18}, version{2, 0}})
    EXPECT_EQ(value_of("UCX_PROTO_ENABLE", preferences_for(good, false)), nullptr) << good.series;
  for (const version bad : {version{1, 16}, version{1, 17}})
    EXPECT_STREQ(value_of("UCX_PROTO_ENABLE", preferences_for(bad, false)), "n") << bad.series;
}

TEST(ucx_preferences, are_to_copy_with_each_version) {
  for (const version any : {version{1, 13}, version{1, 16}, version{1, 23}})
    EXPECT_STREQ(value_of("UCX_ZCOPY_THRESH", preferences_for(any, false)), "inf") << any.series;
  // The threshold says nothing about a rendezvous by the new protocols.
  for (const version any : {version{1, 13}, version{1, 17}})
    EXPECT_EQ(value_of("UCX_PROTOS", preferences_for(any, false)), nullptr) << any.series;
  for (const version any : {version{1, 18}, version{1, 23}}) {
    EXPECT_STREQ(value_of("UCX_PROTOS", preferences_for(any, false)), "^rndv/am/zcopy")
        << any.series;
  }
}

TEST(ucx_preferences, connect_without_blocking_where_somebody_may_be_unreachable) {
  EXPECT_EQ(value_of("UCX_TCP_CONN_NB", preferences_for({1, 13}, false)), nullptr);
  EXPECT_STREQ(value_of("UCX_TCP_CONN_NB", preferences_for({1, 13}, true)), "y");
}

TEST(ucx_preferences, call_what_is_of_sockets_as_each_version_does) {
  using names = std::vector<std::string>;
  const auto names_for = [](version library) {
    names all;
    for (const preference& p : preferences_for(library, true)) {
      if (std::string_view(p.variable) == "UCX_TCP_CONN_NB") all.emplace_back(p.name);
    }
    return all;
  };
  EXPECT_EQ(names_for({1, 13}), (names{"CONN_NB"}));
  EXPECT_EQ(names_for({1, 16}), (names{"CONN_NB", "TCP_CONN_NB"}));
  EXPECT_EQ(names_for({1, 18}), (names{"TCP_CONN_NB"}));
}

// What the environment says of a variable for a while. Null: nothing.
class environment_says {
 public:
  environment_says(const char* variable, const char* value) : variable_(variable) {
    if (const char* const now = std::getenv(variable)) before_ = now;
    set(value);
  }
  ~environment_says() { set(before_ ? before_->c_str() : nullptr); }
  environment_says(const environment_says&) = delete;
  environment_says& operator=(const environment_says&) = delete;

 private:
  void set(const char* value) {
    value != nullptr ? ::setenv(variable_, value, 1) : ::unsetenv(variable_);
  }
  const char* variable_;
  std::optional<std::string> before_;
};

// Of a worker's active messages over sockets: a header may be as long as a segment.
void ask_longest_header(std::size_t& bytes) {
  const test::over network("tcp");
  const worker w("lo");
  decltype(&::ucp_worker_query) query = nullptr;
  os::loaded_library({.title = "UCX", .file = "libucp.so.0", .remedy = ""})
      .find("ucp_worker_query", query);
  ucp_worker_attr_t about{};
  about.field_mask = UCP_WORKER_ATTR_FIELD_MAX_AM_HEADER;
  ASSERT_EQ(query(w.handle(), &about), UCS_OK);
  bytes = about.max_am_header;
}

// UCX tells no error of a name that it does not know, up to 1.20.0; so its effect is looked at.
TEST(ucx_preferences, reach_the_sockets_of_the_version_that_is_loaded) {
  const environment_says nothing("UCX_TCP_TX_SEG_SIZE", nullptr);
  const environment_says nothing_else("UCX_TCP_RX_SEG_SIZE", nullptr);
  std::size_t bytes = 0;
  ASSERT_NO_FATAL_FAILURE(ask_longest_header(bytes));
  EXPECT_GT(bytes, 60'000U);
}

TEST(ucx_preferences, leave_to_the_user_what_the_environment_says) {
  const environment_says segments("UCX_TCP_TX_SEG_SIZE", "16K");
  const environment_says nothing_else("UCX_TCP_RX_SEG_SIZE", nullptr);
  std::size_t bytes = 0;
  ASSERT_NO_FATAL_FAILURE(ask_longest_header(bytes));
  EXPECT_GT(bytes, 12'000U);  // UCX's own are of 8 KiB
  EXPECT_LT(bytes, 20'000U);
}

// Its output says with which UCX the tests run.
TEST(ucx_library, is_not_older_than_the_headers) {
  const version loaded = ucp_library::get().loaded_version();
  const std::string name =
      "UCX " + std::to_string(loaded.generation) + "." + std::to_string(loaded.series);
  std::printf("%s\n", name.c_str());
  EXPECT_GE(loaded, (version{UCP_API_MAJOR, UCP_API_MINOR})) << name;
}

}  // namespace
}  // namespace strata::net::ucx
