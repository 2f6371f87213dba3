// SPDX-License-Identifier: Apache-2.0
// Exceptions on their way between nodes: what is said of them, what is believed, and what becomes
// of a call whose answer is not.
#include "cluster/words/thrown.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "cluster/words/kinds.hpp"
#include "cluster/work/split_phase.hpp"
#include "taskless_node.hpp"

namespace strata::cluster {
namespace {

static_assert(std::is_nothrow_copy_constructible_v<remote_error>);

constexpr node_id nodes_there_are = 50;

std::vector<std::byte> bytes_thrown(const std::exception_ptr& error, node_id self) {
  writer out;
  pack_thrown(out, error, self);
  return {out.bytes().begin(), out.bytes().end()};
}
remote_error thrown_in(std::span<const std::byte> bytes) {
  reader in(bytes);
  return unpack_thrown(in, nodes_there_are);
}
// As it comes from node `self`.
remote_error after(const std::exception_ptr& error, node_id self) {
  return thrown_in(bytes_thrown(error, self));
}
remote_error after(const remote_error& error, node_id self) {
  return after(std::make_exception_ptr(error), self);
}

TEST(thrown, says_what_and_where) {
  const remote_error e = after(std::make_exception_ptr(std::out_of_range("number 5")), 7);
  EXPECT_EQ(e.node(), 7);
  EXPECT_EQ(e.type_name(), "std::out_of_range");
  EXPECT_EQ(e.message(), "number 5");
  EXPECT_EQ(e.trace(), std::vector<node_id>{7});
  EXPECT_EQ(e.hops(), 1U);
  EXPECT_STREQ(e.what(), "std::out_of_range on node 7: number 5");
}

TEST(thrown, need_not_be_an_exception_of_the_library) {
  const remote_error e = after(std::make_exception_ptr(5), 7);
  EXPECT_EQ(e.type_name(), "int");
  EXPECT_EQ(e.message(), "");
  EXPECT_STREQ(e.what(), "int on node 7");
}

TEST(thrown, says_by_which_nodes_it_came) {
  const remote_error e = after(after(std::make_exception_ptr(std::range_error("far")), 2), 1);
  EXPECT_EQ(e.node(), 2);
  EXPECT_EQ(e.type_name(), "std::range_error");
  EXPECT_EQ(e.message(), "far");
  EXPECT_EQ(e.trace(), (std::vector<node_id>{2, 1}));
  EXPECT_STREQ(e.what(), "std::range_error on node 2: far (by way of node 1)");
  const remote_error next = after(e, 40);
  EXPECT_EQ(next.trace(), (std::vector<node_id>{2, 1, 40}));
  EXPECT_STREQ(next.what(), "std::range_error on node 2: far (by way of node 1, node 40)");
}

TEST(thrown, has_the_beginning_of_a_long_way) {
  remote_error e = after(std::make_exception_ptr(std::range_error("far")), 0);
  for (node_id n = 1; n < 40; ++n) e = after(e, n);
  EXPECT_EQ(e.hops(), 40U);
  ASSERT_EQ(e.trace().size(), remote_error::trace_max);
  for (node_id n = 0; n < remote_error::trace_max; ++n) EXPECT_EQ(e.trace()[n], n);
  const std::string what = e.what();
  EXPECT_TRUE(what.ends_with("node 14, node 15 and 24 more)")) << what;
}

TEST(thrown, has_no_longer_words_than_fit) {
  const auto of_words = [](const std::string& words) {
    return after(std::make_exception_ptr(std::runtime_error(words)), 1);
  };
  const std::string fits(thrown_words_bytes_max, 'x');
  EXPECT_EQ(of_words(fits).message(), fits);
  EXPECT_EQ(of_words(fits + 'x').message(), fits.substr(0, thrown_words_bytes_max - 3) + "...");
  std::string umlauts;
  for (int i = 0; i < 3000; ++i) umlauts += "\xc3\xbc";
  const remote_error cut = of_words(umlauts);
  EXPECT_EQ(cut.message(), umlauts.substr(0, 3996) + "...") << "no half of a character";
  EXPECT_EQ(after(cut, 2).message(), cut.message()) << "not cut again";

  using monster = std::map<std::string, std::map<std::string, std::map<std::string, std::string>>>;
  const remote_error e = after(std::make_exception_ptr(monster()), 1);
  EXPECT_EQ(e.type_name().size(), thrown_type_bytes_max);
  EXPECT_TRUE(e.type_name().starts_with("std::map<")) << e.type_name();
  EXPECT_TRUE(e.type_name().ends_with("...")) << e.type_name();
}

TEST(thrown, is_all_there_or_nothing) {
  const remote_error e = after(std::make_exception_ptr(std::range_error("far")), 2);
  std::vector<std::byte> bytes = bytes_thrown(std::make_exception_ptr(e), 1);
  EXPECT_EQ(thrown_in(bytes).hops(), 2U);
  for (std::size_t n = 0; n < bytes.size(); ++n)
    EXPECT_THROW((void)thrown_in(std::span(bytes).first(n)), malformed) << n;
  bytes.push_back(std::byte{});
  EXPECT_THROW((void)thrown_in(bytes), malformed);
}

// What no node says.
TEST(thrown, is_not_believed_if_it_cannot_be) {
  const auto said = [](std::uint32_t hops, const std::vector<node_id>& trace,
                       std::size_t type_bytes = 1, std::size_t words_bytes = 1) {
    writer out;
    out.add(hops).add(static_cast<std::uint16_t>(trace.size()));
    for (const node_id n : trace) out.add(n);
    out.add(static_cast<std::uint16_t>(type_bytes)).add_text(std::string(type_bytes, 't'));
    out.add(static_cast<std::uint16_t>(words_bytes)).add_text(std::string(words_bytes, 'w'));
    return thrown_in(out.bytes());
  };
  const std::vector<node_id> full(remote_error::trace_max, 3), over(full.size() + 1, 3);
  EXPECT_EQ(said(2, {1, 2}).hops(), 2U);
  EXPECT_EQ(said(UINT32_MAX, full).hops(), UINT32_MAX);
  EXPECT_EQ(said(1, {1}, thrown_type_bytes_max, thrown_words_bytes_max).message().size(),
            thrown_words_bytes_max);
  EXPECT_THROW(said(0, {}), malformed) << "thrown nowhere";
  EXPECT_THROW(said(5, {}), malformed) << "thrown nowhere";
  EXPECT_THROW(said(0, {1}), malformed) << "more nodes than it left";
  EXPECT_THROW(said(1, {1, 2}), malformed) << "more nodes than it left";
  EXPECT_THROW(said(3, {1, 2}), malformed) << "not all nodes though there was room";
  EXPECT_THROW(said(17, over), malformed) << "more nodes than are recorded";
  EXPECT_THROW(said(2, {1, nodes_there_are}), malformed) << "no such node";
  EXPECT_THROW(said(1, {1}, thrown_type_bytes_max + 1), malformed) << "a longer name";
  EXPECT_THROW(said(1, {1}, 1, thrown_words_bytes_max + 1), malformed) << "longer words";
  // More words than come.
  writer out;
  out.add(std::uint32_t{1}).add(std::uint16_t{1}).add(node_id{1}).add(std::uint16_t{400});
  EXPECT_THROW((void)thrown_in(out.bytes()), malformed);
}

TEST(thrown, of_any_bytes_is_refused_or_within_its_bounds) {
  const remote_error e = after(std::make_exception_ptr(std::range_error("far")), 2);
  const std::vector<std::byte> good = bytes_thrown(std::make_exception_ptr(e), 1);
  std::minstd_rand random(7);
  int refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::vector<std::byte> bytes = good;
    for (auto changes = 1 + random() % 3; changes != 0; --changes)
      bytes[random() % bytes.size()] = static_cast<std::byte>(random() % 256);
    try {
      const remote_error taken = thrown_in(bytes);
      ASSERT_LE(taken.trace().size(), remote_error::trace_max);
      for (const node_id n : taken.trace()) ASSERT_LT(n, nodes_there_are);
      ASSERT_LT(taken.type_name().size() + taken.message().size(), bytes.size());
    } catch (const malformed&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 1000);
}

// ---- answers ----

// Node 0 of two, which hears what node 1 says.
class caller_of_node_1 final : public taskless_node, public mailer {
 public:
  void post(node_id, kind, std::span<const std::byte>, std::span<const std::byte>) override {}
  [[nodiscard]] node_id self() const noexcept override { return 0; }
  [[nodiscard]] node_id nodes() const noexcept override { return 2; }
  [[nodiscard]] const membership& members() const noexcept override { return both_; }
  void wait_for_room(node_id) override {}

 private:
  membership both_{0, 2, {1}};

 public:
  work_counts counts;
  split_phase data{*this, *this, counts};
};

// A call of a function that returns a number.
struct awaited_number : detail::task {
  awaited_number() : task{&type_of} {}
  int times_accepted = 0;
  std::exception_ptr error;
  std::uint32_t number = 0;
  std::vector<const awaited_number*>* in_order = nullptr;  // of which it is one, when it has ended

  static void accept(detail::task& t, const std::exception_ptr& e, const std::byte* value) {
    auto& self = static_cast<awaited_number&>(t);
    ++self.times_accepted;
    self.error = e;
    if (self.in_order != nullptr) self.in_order->push_back(&self);
    if (e == nullptr) std::memcpy(&self.number, value, sizeof(self.number));
  }
  static constexpr detail::wire_type wire{
      0, nullptr, nullptr, nullptr, nullptr, &accept, sizeof(std::uint32_t)};
  static constexpr detail::task_type type_of{nullptr, nullptr, nullptr, nullptr, &wire};
};

class answers : public testing::Test {
 protected:
  answers() { here.data.goes_away(call, 1, here.network_worker(), calls_away::trip::to_named); }

  void answer(detail::global_address to, bool threw, std::span<const std::byte> rest) {
    writer out;
    out.add(to.bits()).add(std::uint64_t{threw ? 1U : 0U}).add_bytes(rest);
    here.data.on_message(1, kind::returned, reader(out.bytes()));
  }
  void expect_lost_with_its_node() {
    EXPECT_TRUE(here.data.awaits_something());
    EXPECT_EQ(call.times_accepted, 0);
    const auto lost = std::make_exception_ptr(node_lost_error(1, "node 1 is lost"));
    here.data.lose(lost);
    EXPECT_EQ(call.times_accepted, 1);
    EXPECT_EQ(call.error, lost);
  }

  caller_of_node_1 here;
  awaited_number call;
  const detail::global_address home{0, &call};
  const std::vector<std::byte> number{std::byte{5}, std::byte{1}, std::byte{0}, std::byte{0}};
};

TEST_F(answers, end_a_call_once) {
  answer(home, false, number);
  EXPECT_EQ(call.times_accepted, 1);
  EXPECT_EQ(call.number, 261U);
  EXPECT_FALSE(here.data.awaits_something());
  EXPECT_THROW(answer(home, false, number), malformed);
  EXPECT_EQ(call.times_accepted, 1);
}

TEST_F(answers, bring_what_was_thrown) {
  answer(home, true, bytes_thrown(std::make_exception_ptr(std::range_error("far")), 1));
  ASSERT_EQ(call.times_accepted, 1);
  ASSERT_NE(call.error, nullptr);
  try {
    std::rethrow_exception(call.error);
  } catch (const remote_error& e) {
    EXPECT_EQ(e.trace(), std::vector<node_id>{1});
    EXPECT_EQ(e.message(), "far");
  }
}

TEST_F(answers, of_another_size_leave_the_call_where_it_is) {
  for (const std::size_t n : {0UL, 1UL, 3UL})
    EXPECT_THROW(answer(home, false, std::span(number).first(n)), malformed) << n;
  std::vector<std::byte> longer = number;
  longer.push_back(std::byte{});
  EXPECT_THROW(answer(home, false, longer), malformed);
  expect_lost_with_its_node();
}

TEST_F(answers, with_half_an_exception_leave_the_call_where_it_is) {
  const auto thrown = bytes_thrown(std::make_exception_ptr(std::range_error("far")), 1);
  for (std::size_t n = 0; n < thrown.size(); ++n)
    EXPECT_THROW(answer(home, true, std::span(thrown).first(n)), malformed) << n;
  expect_lost_with_its_node();
}

TEST_F(answers, to_nobody_are_refused) {
  awaited_number other;
  EXPECT_THROW(answer({0, &other}, false, number), malformed) << "it was never sent";
  EXPECT_THROW(answer({1, &call}, false, number), malformed) << "of another node";
  EXPECT_EQ(other.times_accepted, 0);
  expect_lost_with_its_node();
}

// Far more than are told at a time; they do not lie in memory as they went.
class many_calls : public testing::Test {
 protected:
  many_calls() {
    for (std::size_t i = 0; i < calls.size(); ++i) {
      awaited_number& c = calls[i * 7 % calls.size()];
      c.in_order = &told;
      here.data.goes_away(c, 1, here.network_worker(), calls_away::trip::to_named);
      went.push_back(&c);
    }
  }
  caller_of_node_1 here;
  std::vector<awaited_number> calls{1'000};
  std::vector<const awaited_number*> went, told;
};

TEST_F(many_calls, hear_of_a_loss_in_the_order_in_which_they_went) {
  here.data.lose(std::make_exception_ptr(node_lost_error(1, "node 1 is lost")));
  EXPECT_EQ(told, went);
  EXPECT_FALSE(here.data.awaits_something());
}

TEST_F(many_calls, hear_in_that_order_that_their_node_has_left) {
  awaited_number elsewhere;
  here.data.goes_away(elsewhere, 0, here.network_worker(), calls_away::trip::to_named);
  here.data.on_left(1);
  EXPECT_EQ(told, went);
  EXPECT_THROW(std::rethrow_exception(calls.front().error), node_lost_error);
  EXPECT_EQ(elsewhere.times_accepted, 0);
  EXPECT_TRUE(here.data.awaits_something());
  EXPECT_TRUE(here.data.comes_back(elsewhere));
}

}  // namespace
}  // namespace strata::cluster
