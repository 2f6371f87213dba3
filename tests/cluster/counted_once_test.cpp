// SPDX-License-Identifier: Apache-2.0
// What a node has counted as received it does not throw for any more: whoever handles messages
// would count it once more, and the job would never be found at rest. Nor would it if something
// counted as sent that never was.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "../sim/errands.hpp"
#include "cluster/protocols.hpp"
#include "cluster/words/thrown.hpp"
#include "cluster/work/packed_token.hpp"
#include "taskless_node.hpp"

namespace strata::cluster {
namespace {

// Node 0, which has no memory for what it would have to say, so often.
class node_without_memory final : public taskless_node, public mailer, public clock {
 public:
  node_without_memory()
      : all(*this, *this, *this, {}, 1'000'000'000, [](node_id, const std::string&) {}, {}) {}

  void post(node_id, kind, std::span<const std::byte>, std::span<const std::byte>) override {
    ++posts;
    if (refusals == 0) return;
    --refusals;
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

  unsigned posts = 0, refusals = 1;
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
  EXPECT_NO_THROW(n.all.balance.want_work());
  EXPECT_EQ(n.posts, 2U) << "it asks in the end";
  n.now_ += 1'000'000'000;
  n.hear(kind::tokens, std::as_bytes(std::span(&load, 1)));
  n.posts = 0;
  n.refusals = 1;
  n.now_ += 1'000;
  n.hear(kind::tokens, std::as_bytes(std::span(&load, 1)));
  EXPECT_EQ(n.posts, 1U) << "it asks for more";
  EXPECT_EQ(n.all.counts.received, 2U);
  // So does a worker that is about to begin one, which throws nothing.
  n.refusals = 0;
  n.all.balance.want_work();
  n.now_ += 1'000;
  n.hear(kind::tokens, std::as_bytes(std::span(&load, 1)));
  n.posts = 0;
  n.refusals = 1;
  EXPECT_NO_THROW(n.all.balance.begins_token());
  EXPECT_EQ(n.posts, 1U);
}

TEST(counted_once, is_a_failure_after_which_all_have_to_agree) {
  node_without_memory n;
  writer thrown;
  pack_thrown(thrown, std::make_exception_ptr(std::runtime_error("no such place")), 1);
  n.hear(kind::failed, thrown.bytes());
  EXPECT_EQ(n.posts, 2U) << "it asks whether all is over, in the end";
  EXPECT_EQ(n.all.counts.received, 1U);
}

// Node 0 with tasks, and a shelf for them. There is no memory for sending any, unless `has_memory`.
class node_with_tasks final : public taskless_node,
                              public mailer,
                              public clock,
                              public net::shelves {
 public:
  node_with_tasks()
      : all(*this, *this, *this, {}, 1'000'000'000, [](node_id, const std::string&) {},
            {this, places_max}) {}
  ~node_with_tasks() {
    for (detail::task* const t : tasks) t->type->abandon(*t, worker);
  }

  void post(node_id, kind k, std::span<const std::byte>, std::span<const std::byte>) override {
    if ((k == kind::tokens || k == kind::shelf_room) && !has_memory) throw std::bad_alloc();
    said.push_back(k);
  }
  [[nodiscard]] node_id self() const noexcept override { return 0; }
  [[nodiscard]] node_id nodes() const noexcept override { return 2; }
  [[nodiscard]] const membership& members() const noexcept override { return members_; }
  void wait_for_room(node_id) override {}
  [[nodiscard]] std::int64_t now_ns() const override { return 1; }

  void run_soon(detail::task* t) override {
    if (!has_queue) throw std::bad_alloc();
    tasks.push_back(t);
  }
  void fail(std::exception_ptr) override { ++failures; }
  detail::task* take_travelling() override {
    if (tasks.empty()) return nullptr;
    detail::task* const t = tasks.front();
    tasks.pop_front();
    return t;
  }
  detail::task* take_travelling_from(detail::worker&) override { return take_travelling(); }
  detail::task* take_shelvable_from(detail::worker&) override { return take_travelling(); }
  [[nodiscard]] std::uint32_t load() const override {
    return static_cast<std::uint32_t>(tasks.size());
  }

  unsigned offer(std::span<const std::byte> bytes, unsigned) noexcept override {
    on_shelf.emplace_back(bytes.begin(), bytes.end());
    return 0;
  }
  net::taken_thing take_back(std::byte* into) noexcept override {
    if (on_shelf.empty()) return {};
    const std::size_t n = on_shelf.front().size();
    std::copy(on_shelf.front().begin(), on_shelf.front().end(), into);
    on_shelf.pop_front();
    return {net::take_outcome::taken, 0, n};
  }
  void set_attended(bool) noexcept override {}
  [[nodiscard]] unsigned offered() const noexcept override {
    return static_cast<unsigned>(on_shelf.size());
  }
  net::taken_thing take(node_id, std::byte* into) noexcept override {
    std::copy(on_other_shelf.begin(), on_other_shelf.end(), into);
    const std::size_t n = std::exchange(on_other_shelf, {}).size();
    if (n == 0) return {};
    return {.how = net::take_outcome::taken, .bytes = n, .tell_owner = true};
  }

  void hear_a_wish(wish w) {
    const std::array<std::uint32_t, 2> request{8, static_cast<std::uint32_t>(w)};
    EXPECT_TRUE(all.on_message(1, kind::steal, std::as_bytes(std::span(request))));
  }
  void add_token() { tasks.push_back(test::token_errand::unpack(worker, nullptr)); }
  // All that was there is, nothing is under way, and nobody is awaited.
  void expect_all_here(std::size_t n) {
    EXPECT_EQ(tasks.size(), n);
    EXPECT_EQ(all.counts.sent, all.counts.received);
    EXPECT_FALSE(all.data.awaits_something());
  }
  [[nodiscard]] std::size_t times(kind k) const {
    return static_cast<std::size_t>(std::count(said.begin(), said.end(), k));
  }

  bool has_memory = false;  // to send tokens
  bool has_queue = true;    // for those that come, or stay
  unsigned failures = 0;
  std::deque<detail::task*> tasks;
  std::deque<std::vector<std::byte>> on_shelf;
  std::vector<std::byte> on_other_shelf;
  std::vector<kind> said;

 private:
  membership members_{0, 2, {1}};

 public:
  protocols all;
};

TEST(counted_once, are_tokens_that_there_is_no_memory_to_send) {
  test::awaited_errand call;
  node_with_tasks n;
  n.add_token();
  n.tasks.push_back(&call);
  n.add_token();
  n.hear_a_wish(wish::none);
  EXPECT_EQ(n.said, std::vector{kind::nothing}) << "it has to ask others";
  n.expect_all_here(3);
  EXPECT_NE(std::find(n.tasks.begin(), n.tasks.end(), &call), n.tasks.end());
}

TEST(counted_once, are_tokens_that_there_is_no_memory_to_feed_others_with) {
  node_with_tasks n;
  n.hear_a_wish(wish::kept);
  n.add_token();
  n.all.balance.feed(n.worker);
  n.expect_all_here(1);
  n.has_memory = true;
  n.all.balance.feed(n.worker);
  EXPECT_EQ(n.times(kind::tokens), 1U) << "the other one still waits";
  EXPECT_TRUE(n.tasks.empty());
}

// What can neither leave nor stay is given up, and who waits for it hears so. About half is asked
// for: the rest is not touched.
TEST(counted_once, are_tokens_that_there_is_no_memory_to_queue_either) {
  test::awaited_errand call;
  node_with_tasks n;
  n.tasks.push_back(&call);
  n.add_token();
  n.add_token();
  n.has_queue = false;
  n.hear_a_wish(wish::none);
  n.expect_all_here(1);
  EXPECT_TRUE(call.answered);
  EXPECT_EQ(n.failures, 1U) << "of the token";
  EXPECT_EQ(n.worker.frames.live(), 1);
}

TEST(counted_once, are_tasks_of_the_shelf_that_there_is_no_memory_to_send) {
  test::awaited_errand call;
  node_with_tasks n;
  n.all.shelf.somebody_asks();
  n.tasks.push_back(&call);
  n.add_token();
  EXPECT_TRUE(n.all.shelf.fill(n.worker));
  ASSERT_EQ(n.on_shelf.size(), 2U);
  EXPECT_EQ(n.all.counts.sent, 2U);
  n.hear_a_wish(wish::kept);
  EXPECT_EQ(n.tasks, std::deque<detail::task*>{&call});
  EXPECT_EQ(n.all.counts.sent - n.all.counts.received, n.on_shelf.size());
  EXPECT_FALSE(n.all.data.awaits_something());
  n.tasks.clear();
  n.has_memory = true;
  n.all.balance.feed(n.worker);
  EXPECT_EQ(n.times(kind::tokens), 1U) << "the other one still waits";
  EXPECT_EQ(n.on_shelf.size(), 0U);
}

// Nobody else knows of a task that has been taken; its owner hears of room when somebody asks.
TEST(counted_once, are_tasks_of_another_shelf_whose_owner_cannot_be_told) {
  node_with_tasks n;
  writer token;
  token.add(test::token_errand::code.identity()).add(std::uint64_t{0});
  n.on_other_shelf.assign(token.bytes().begin(), token.bytes().end());
  node_id whose = 0;
  detail::next_take after;
  detail::task* const t = n.all.shelf.take(n.worker, whose, after);
  ASSERT_NE(t, nullptr);
  n.tasks.push_back(t);
  EXPECT_EQ(whose, 1);
  EXPECT_EQ(n.all.counts.received, 1U);
  EXPECT_EQ(n.times(kind::shelf_room), 0U);
}

// A call whose node has no memory for it when it arrives.
struct refused_errand : test::awaited_errand {
  static detail::task* unpack(detail::worker&, const std::byte*) { throw std::bad_alloc(); }
  static const detail::travelling_code code;
  static constexpr detail::wire_type wire{8,     &pack,   &unpack, &test::errand::name,
                                          &code, &accept, 8};
};
const detail::travelling_code refused_errand::code{wire, &detail::__ehdr_start};

TEST(counted_once, are_calls_that_there_is_no_memory_to_begin) {
  node_with_tasks n;
  writer tokens;
  tokens.add(std::uint32_t{0});
  for (const detail::code_identity code :
       {refused_errand::code.identity(), test::token_errand::code.identity(),
        refused_errand::code.identity()})
    tokens.add(code).add(detail::global_address(1, &n).bits());
  EXPECT_TRUE(n.all.on_message(1, kind::tokens, tokens.bytes()));
  EXPECT_EQ(n.times(kind::returned), 2U);
  EXPECT_EQ(n.tasks.size(), 1U);
  EXPECT_EQ(n.all.counts.received, 1U);
}

}  // namespace
}  // namespace strata::cluster
