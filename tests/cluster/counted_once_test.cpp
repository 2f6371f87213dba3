// SPDX-License-Identifier: Apache-2.0
// What a node has counted as received it does not throw for any more: whoever handles messages
// would count it once more, and the job would never be found at rest.
#include <gtest/gtest.h>

#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "cluster/protocols.hpp"
#include "cluster/words/thrown.hpp"
#include "taskless_node.hpp"

namespace strata::cluster {
namespace {

// Node 0, which has no memory for anything that it would have to say.
class node_without_memory final : public taskless_node, public mailer, public clock {
 public:
  node_without_memory()
      : all(*this, *this, *this, {}, 1'000'000'000, [](node_id, const std::string&) {}, {}) {}

  void post(node_id, kind, std::span<const std::byte>, std::span<const std::byte>) override {
    ++posts;
    throw std::bad_alloc();
  }
  [[nodiscard]] node_id self() const noexcept override { return 0; }
  [[nodiscard]] node_id nodes() const noexcept override { return 2; }
  [[nodiscard]] const membership& members() const noexcept override { return members_; }
  void wait_for_room(node_id) override {}
  void fail(std::exception_ptr) override {}
  [[nodiscard]] std::int64_t now_ns() const override { return now_; }

  // As whoever handles messages.
  void hear(kind k, std::span<const std::byte> payload) {
    EXPECT_NO_THROW(EXPECT_TRUE(all.on_message(1, k, payload)));
  }

  unsigned posts = 0;
  std::int64_t now_ = 1'000'000'000;

 private:
  membership members_{0, 2, {}};

 public:
  protocols all;
};

TEST(counted_once, are_tokens_after_which_more_are_asked_for) {
  node_without_memory n;
  const std::uint32_t load = 0;
  // The first answer takes a second, and what follows comes soon after: such tokens are soon over.
  EXPECT_THROW(n.all.balance.want_work(), std::bad_alloc);
  n.now_ += 1'000'000'000;
  n.hear(kind::tokens, std::as_bytes(std::span(&load, 1)));
  n.posts = 0;
  n.now_ += 1'000;
  n.hear(kind::tokens, std::as_bytes(std::span(&load, 1)));
  EXPECT_EQ(n.posts, 1U) << "it asks for more";
  EXPECT_EQ(n.all.counts.received, 2U);
}

TEST(counted_once, is_a_failure_after_which_all_have_to_agree) {
  node_without_memory n;
  writer thrown;
  pack_thrown(thrown, std::make_exception_ptr(std::runtime_error("no such place")), 1);
  n.hear(kind::failed, thrown.bytes());
  EXPECT_EQ(n.posts, 1U) << "it asks whether all is over";
  EXPECT_EQ(n.all.counts.received, 1U);
}

}  // namespace
}  // namespace strata::cluster
