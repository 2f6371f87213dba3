// SPDX-License-Identifier: Apache-2.0
// Blocks of every size between two nodes: what they are cut into, what is asked for at once, and
// when the slot is signalled.
#include "cluster/work/split_phase.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <exception>
#include <functional>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cluster/words/kinds.hpp"
#include "cluster/work/packed_token.hpp"
#include "strata/detail/remote.hpp"
#include "strata/error.hpp"
#include "strata/mailbox.hpp"
#include "strata/runtime.hpp"
#include "strata/slot.hpp"
#include "taskless_node.hpp"

namespace strata::cluster {
namespace {

using detail::global_address;

// As in split_phase.cpp.
constexpr std::size_t piece = part_bytes_max - 64;
constexpr std::size_t at_once = 8 * piece;

struct letter {
  node_id to;
  kind k;
  std::vector<std::byte> payload;
};

// Node `self` of two; what it posts goes into a queue that both share.
class side final : public taskless_node, public mailer {
 public:
  side(node_id self, std::deque<letter>& under_way) : self_(self), under_way_(under_way) {}

  void post(node_id to, kind k, std::span<const std::byte> head,
            std::span<const std::byte> body) override {
    if (refusals != 0) {
      --refusals;
      throw std::bad_alloc();
    }
    letter one{to, k, {head.begin(), head.end()}};
    one.payload.insert(one.payload.end(), body.begin(), body.end());
    EXPECT_LE(one.payload.size(), part_bytes_max);
    under_way_.push_back(std::move(one));
  }
  [[nodiscard]] node_id self() const noexcept override {
    if (while_asking != nullptr) while_asking();
    return self_;
  }
  [[nodiscard]] node_id nodes() const noexcept override { return 2; }
  [[nodiscard]] const membership& members() const noexcept override { return both_; }
  void wait_for_room(node_id) override {
    ++waits;
    if (while_waiting != nullptr) while_waiting();
  }
  void hear_that_other_left() {
    both_.set(1 - self_, standing::left);
    data.on_left(1 - self_);
  }
  [[nodiscard]] net::corked cork(node_id, std::span<const std::byte>) override {
    ++corks;
    return {};
  }
  void fail(std::exception_ptr error) override {
    if (!may_fail) return taskless_node::fail(error);
    ++failures;
  }

  unsigned waits = 0, corks = 0;
  unsigned refusals = 0;  // for so many messages there is no memory
  bool may_fail = false;
  unsigned failures = 0;
  std::function<void()> while_asking, while_waiting;

 private:
  const node_id self_;
  std::deque<letter>& under_way_;
  membership both_{self_, 2, {static_cast<std::uint16_t>(1 - self_)}};

 public:
  work_counts counts;
  split_phase data{*this, *this, counts};
};

class blocks : public testing::Test {
 protected:
  // Until nothing is under way; how many messages of that kind there were.
  std::size_t deliver(kind counted) {
    std::size_t n = 0;
    while (!under_way.empty()) {
      const letter one = std::move(under_way.front());
      under_way.pop_front();
      n += one.k == counted ? 1 : 0;
      side& to = one.to == 0 ? here : there;
      EXPECT_TRUE(to.data.on_message(one.to == 0 ? 1 : 0, one.k, reader(one.payload)));
    }
    return n;
  }
  static std::vector<std::byte> bytes_of(std::size_t n) {
    std::vector<std::byte> all(n);
    for (std::size_t i = 0; i < n; ++i) all[i] = static_cast<std::byte>(i * 7 + i / 251);
    return all;
  }
  static std::size_t pieces(std::size_t n) { return n == 0 ? 1 : (n + piece - 1) / piece; }
  static global_address at(node_id n, const void* p) { return {n, const_cast<void*>(p)}; }

  std::deque<letter> under_way;
  side here{0, under_way}, there{1, under_way};
};

constexpr std::size_t sizes[] = {
    0,           1,           piece - 1,        piece,       piece + 1, at_once, at_once - 1,
    at_once + 1, 2 * at_once, 5 * at_once + 77, 20 * at_once};

TEST_F(blocks, are_put_in_pieces_of_which_the_last_signals) {
  for (const std::size_t n : sizes) {
    const auto from = bytes_of(n);
    std::vector<std::byte> into(n + 1, std::byte{99});
    here.corks = here.waits = 0;
    // The slot is the other node's own: it is told of by a message to us.
    here.data.put(at(1, into.data()), from.data(), n, at(0, nullptr));
    EXPECT_EQ(deliver(kind::put), pieces(n)) << n;
    EXPECT_EQ(here.corks, n <= piece ? 0 : n / at_once + (n % at_once > piece ? 1 : 0)) << n;
    EXPECT_EQ(here.waits, n == 0 ? 1 : (n + at_once - 1) / at_once) << n;
    EXPECT_EQ(into.back(), std::byte{99});
    into.pop_back();
    EXPECT_EQ(into, from) << n;
  }
}

TEST_F(blocks, are_refused_where_an_address_is_null_before_anything_is_said) {
  const auto some = bytes_of(2 * piece);
  std::vector<std::byte> into(some.size());
  for (const std::size_t n : {std::size_t{1}, some.size()}) {
    EXPECT_THROW(here.data.put(at(1, nullptr), some.data(), n, at(0, nullptr)), misuse_error);
    EXPECT_THROW(here.data.get(at(1, nullptr), into.data(), n, at(0, nullptr)), misuse_error);
    EXPECT_THROW(here.data.get(at(1, some.data()), nullptr, n, at(0, nullptr)), misuse_error);
    EXPECT_THROW(here.data.drop_in(at(1, nullptr), some.data(), n), misuse_error);
  }
  EXPECT_TRUE(under_way.empty());
  EXPECT_FALSE(here.data.awaits_something());
  here.data.put(at(1, nullptr), nullptr, 0, at(0, nullptr));
  EXPECT_EQ(under_way.size(), 1U) << "nothing needs no address";
}

TEST_F(blocks, are_asked_for_in_few_messages_and_come_in_pieces) {
  for (const std::size_t n : sizes) {
    const auto from = bytes_of(n);
    std::vector<std::byte> into(n + 1, std::byte{99});
    here.data.get(at(1, from.data()), into.data(), n, at(0, nullptr));
    // As many as there is room for; the answers bring the others.
    EXPECT_LE(under_way.size(), 8U);
    std::size_t got = 0, asked = 0;
    while (!under_way.empty()) {
      letter one = std::move(under_way.front());
      under_way.pop_front();
      got += one.k == kind::got ? 1 : 0;
      asked += one.k == kind::get ? 1 : 0;
      side& to = one.to == 0 ? here : there;
      to.data.on_message(one.to == 0 ? 1 : 0, one.k, reader(one.payload));
    }
    EXPECT_EQ(asked, n == 0 ? 1 : (n + at_once - 1) / at_once) << n;
    EXPECT_EQ(got, pieces(n)) << n;
    EXPECT_FALSE(here.data.awaits_something()) << n;
    EXPECT_EQ(into.back(), std::byte{99});
    into.pop_back();
    EXPECT_EQ(into, from) << n;
  }
}

TEST_F(blocks, are_given_in_no_larger_parts_than_may_be_asked_for) {
  const auto from = bytes_of(at_once + 1);
  const auto ask = [&](std::uint64_t n) {
    const std::uint64_t wanted[] = {at(1, from.data()).bits(), at(0, from.data()).bits(), 0, n};
    const auto words = std::as_bytes(std::span(wanted));
    there.data.on_message(0, kind::get, reader(words));
  };
  ask(at_once);
  EXPECT_EQ(under_way.size(), 8U);
  under_way.clear();
  EXPECT_THROW(ask(at_once + 1), malformed);
  EXPECT_THROW(ask(~std::uint64_t{0}), malformed);
  EXPECT_TRUE(under_way.empty());
}

// The program's; a handler answers on.
TEST_F(blocks, go_nowhere_once_a_node_is_lost) {
  const auto some = bytes_of(2 * piece);
  std::vector<std::byte> into(some.size());
  here.data.lose(std::make_exception_ptr(node_lost_error(7, "node 7 is lost")));
  here.data.lose(std::make_exception_ptr(node_lost_error(8, "another one")));
  const auto refused = [](auto&& operation) {
    try {
      operation();
      ADD_FAILURE();
    } catch (const node_lost_error& e) {
      EXPECT_EQ(e.node(), 7);
    }
  };
  for (const std::size_t n : {std::size_t{1}, some.size()}) {
    refused([&] { here.data.put(at(1, into.data()), some.data(), n, at(0, nullptr)); });
    refused([&] { here.data.get(at(1, some.data()), into.data(), n, at(0, nullptr)); });
    refused([&] { here.data.drop_in(at(1, &there), some.data(), n); });
  }
  refused([&] { here.data.signal(at(1, &there)); });
  refused([&] { here.data.increment(at(1, &there), 1); });
  EXPECT_TRUE(under_way.empty());
  EXPECT_FALSE(here.data.awaits_something());
  there.data.get(at(0, some.data()), into.data(), some.size(), at(1, nullptr));
  EXPECT_EQ(deliver(kind::got), pieces(some.size()));
  EXPECT_EQ(into, some);
}

// Else this node would wait for them, and could never leave.
TEST_F(blocks, are_not_awaited_where_their_node_leaves_while_they_are_asked_for) {
  const auto from = bytes_of(1);
  std::vector<std::byte> into(from.size());
  // After it was found to be there.
  here.while_asking = [&] { here.hear_that_other_left(); };
  EXPECT_THROW(here.data.get(at(1, from.data()), into.data(), from.size(), at(0, nullptr)),
               node_lost_error);
  EXPECT_FALSE(here.data.awaits_something());
}

TEST_F(blocks, are_not_awaited_that_there_is_no_memory_to_ask_for) {
  const auto from = bytes_of(at_once);
  std::vector<std::byte> into(from.size());
  here.refusals = 1;
  EXPECT_THROW(here.data.get(at(1, from.data()), into.data(), from.size(), at(0, nullptr)),
               std::bad_alloc);
  EXPECT_FALSE(here.data.awaits_something());
  EXPECT_EQ(here.counts.sent, here.counts.received);
  // Those who wait until it has come do not wait for ever.
  std::vector<std::byte> last(from.size());
  bool one_waits = false;
  here.while_waiting = [&] {
    if (one_waits) return;
    here.data.get(at(1, from.data()), last.data(), last.size(), at(0, nullptr));
    one_waits = here.data.describe_waits().find(", 1 more requests wait") != std::string::npos;
  };
  here.refusals = 1;
  EXPECT_THROW(here.data.get(at(1, from.data()), into.data(), from.size(), at(0, nullptr)),
               std::bad_alloc);
  EXPECT_TRUE(one_waits);
  EXPECT_EQ(deliver(kind::get), 1U);
  EXPECT_EQ(last, from);
  EXPECT_FALSE(here.data.awaits_something());
  // Nor do they, or those who ask later, where there is none for what waited either.
  one_waits = false;
  here.may_fail = true;
  here.refusals = 2;
  EXPECT_THROW(here.data.get(at(1, from.data()), into.data(), from.size(), at(0, nullptr)),
               std::bad_alloc);
  EXPECT_TRUE(one_waits);
  EXPECT_EQ(here.failures, 1U);
  EXPECT_FALSE(here.data.awaits_something());
  std::fill(into.begin(), into.end(), std::byte{0});
  here.data.get(at(1, from.data()), into.data(), into.size(), at(0, nullptr));
  EXPECT_EQ(deliver(kind::get), 1U);
  EXPECT_EQ(into, from);
}

// The program's mistake, of which the node that has answered knows nothing.
TEST_F(blocks, are_not_awaited_that_have_come_for_a_slot_that_refuses_them) {
  const auto from = bytes_of(1);
  std::vector<std::byte> into(from.size()), last(2 * at_once);
  const std::vector<std::byte> large = bytes_of(last.size());
  options one;
  one.workers = 1;
  runtime rt(one);
  completion once;
  slot* const used_up = &once;
  rt.run([&] {
    sync(once.sptr());
    once.wait();
  });
  here.data.get(at(1, from.data()), into.data(), into.size(), at(0, used_up));
  // As much as may be awaited, and more.
  unsigned asked = 0;
  for (; here.data.describe_waits().find(", 0 more") != std::string::npos; ++asked)
    here.data.get(at(1, large.data()), last.data(), last.size(), at(0, nullptr));
  EXPECT_TRUE(there.data.on_message(0, kind::get, reader(under_way.front().payload)));
  under_way.pop_front();
  const letter answer = std::move(under_way.back());
  under_way.pop_back();
  ASSERT_EQ(answer.k, kind::got);
  EXPECT_THROW(here.data.on_message(1, kind::got, reader(answer.payload)), misuse_error);
  EXPECT_EQ(into, from);
  EXPECT_EQ(deliver(kind::got), asked * pieces(last.size()));
  EXPECT_EQ(last, large);
  EXPECT_FALSE(here.data.awaits_something());
}

// Whoever drops an item in does not know what the mailbox signals.
TEST_F(blocks, and_items_of_a_mailbox_that_signals_nobody_there_blame_its_node) {
  options one;
  one.workers = 1;
  runtime rt(one);
  std::optional<mailbox> box;
  completion never;
  slot* const some = &never;
  rt.run([&] { box.emplace(slot_ptr(77, some)); });
  const auto item = bytes_of(2 * piece);
  for (const std::size_t n : {std::size_t{1}, item.size()}) {
    here.data.drop_in(at(1, &*box), item.data(), n);
    EXPECT_THROW(deliver(kind::drop_in), misuse_error) << n;
    EXPECT_TRUE(under_way.empty()) << n;
  }
  EXPECT_EQ(box->size(), 2U);
}

// A call, or with has_home false a token; what becomes of it is counted. Where it arrives there is
// no memory for it.
struct counted_task : detail::task {
  static inline unsigned told = 0, abandoned = 0, given_up = 0;
  static inline std::exception_ptr error;
  static void pack(const detail::task& t, std::uint16_t here, std::byte* out) {
    const std::uint64_t home = global_address(here, &t).bits();
    std::memcpy(out, &home, sizeof home);
  }
  static detail::task* unpack(detail::worker&, const std::byte*) { throw std::bad_alloc(); }
  static void accept(detail::task&, const std::exception_ptr& e, const std::byte*) {
    ++told;
    error = e;
  }
  static void abandon(detail::task&, detail::worker&) { ++abandoned; }
  static void give_up(detail::worker&, const std::byte*) noexcept { ++given_up; }
  static const char* name() { return "counted"; }

  template <bool HasHome>
  struct travel {
    static const detail::travelling_code code;
    static constexpr detail::wire_type wire{.argument_bytes = sizeof(std::uint64_t),
                                            .pack = &pack,
                                            .unpack = &unpack,
                                            .name = &name,
                                            .code = &code,
                                            .accept = HasHome ? &accept : nullptr,
                                            .give_up = HasHome ? nullptr : &give_up};
    static constexpr detail::task_type type_of{nullptr, nullptr, &abandon, &name, &wire};
  };
};
template <bool HasHome>
const detail::travelling_code counted_task::travel<HasHome>::code{wire, &detail::__ehdr_start};

TEST_F(blocks, and_calls_are_not_awaited_that_there_is_no_memory_to_send) {
  counted_task call{{&counted_task::travel<true>::type_of}};
  here.refusals = 1;
  EXPECT_THROW(here.data.call(here.worker, 1, call, {}), std::bad_alloc);
  EXPECT_FALSE(here.data.awaits_something());
  here.data.lose(std::make_exception_ptr(node_lost_error(1, "lost")));
  EXPECT_EQ(counted_task::told, 0U) << "it was there no more";
}

// It is kept back for that node, and as good here.
TEST_F(blocks, and_calls_that_were_to_go_as_tokens_come_back_when_their_node_has_left) {
  counted_task call{{&counted_task::travel<true>::type_of}};
  counted_task::told = 0;
  writer out;
  pack_token(out, call, 0);
  here.data.goes_away(call, 1, here.worker, calls_away::trip::as_token);
  here.hear_that_other_left();
  EXPECT_EQ(counted_task::told, 0U) << "nothing has become of it";
  reader in(out.bytes());
  EXPECT_EQ(here.data.come_back(here.worker, in), &call);
  EXPECT_FALSE(here.data.awaits_something());
}

TEST_F(blocks, and_tokens_leave_nothing_behind_that_there_is_no_memory_to_send) {
  counted_task token{{&counted_task::travel<false>::type_of}};
  here.refusals = 1;
  EXPECT_THROW(here.data.invoke(here.worker, 1, &token), std::bad_alloc);
  EXPECT_EQ(counted_task::abandoned, 1U);
  EXPECT_EQ(counted_task::given_up, 1U);
  EXPECT_EQ(here.counts.sent, here.counts.received);
}

// Else who waits for the result would wait for ever; of a token the computation hears.
TEST_F(blocks, and_calls_that_there_is_no_memory_to_begin_throw_that) {
  counted_task call{{&counted_task::travel<true>::type_of}};
  counted_task::told = 0;
  here.data.call(here.worker, 1, call, {});
  EXPECT_EQ(deliver(kind::returned), 1U);
  ASSERT_EQ(counted_task::told, 1U);
  try {
    std::rethrow_exception(std::exchange(counted_task::error, nullptr));
  } catch (const remote_error& e) {
    EXPECT_EQ(e.type_name(), "std::bad_alloc");
  }
  EXPECT_FALSE(here.data.awaits_something());
  counted_task token{{&counted_task::travel<false>::type_of}};
  there.may_fail = true;
  here.data.invoke(here.worker, 1, &token);
  EXPECT_EQ(deliver(kind::invoke), 1U);
  EXPECT_EQ(there.failures, 1U);
  // Nor for the answer, at first.
  here.data.call(here.worker, 1, call, {});
  there.refusals = 1;
  EXPECT_EQ(deliver(kind::returned), 1U);
  EXPECT_EQ(there.refusals, 0U);
  EXPECT_EQ(counted_task::told, 2U);
  EXPECT_EQ(there.failures, 1U);
  EXPECT_EQ(here.counts.sent + there.counts.sent, here.counts.received + there.counts.received);
}

// From a peer that lies: refused, whatever came before.
TEST_F(blocks, and_pieces_of_an_item_that_do_not_fit_together_are_refused) {
  const auto drop = [&](std::uint64_t offset, std::uint64_t whole, std::size_t bytes) {
    const std::uint64_t head[] = {at(1, &there).bits(), offset, whole};
    const auto words = std::as_bytes(std::span(head));
    std::vector<std::byte> payload(words.begin(), words.end());
    payload.resize(payload.size() + bytes);
    there.data.on_message(0, kind::drop_in, reader(payload));
  };
  EXPECT_THROW(drop(10, 100, 10), malformed) << "nothing has come before";
  EXPECT_THROW(drop(0, 10, 11), malformed) << "more than there is";
  drop(0, 100, 40);
  EXPECT_THROW(drop(41, 100, 10), malformed) << "a gap";
  drop(0, 100, 40);
  EXPECT_THROW(drop(40, 100, 61), malformed) << "more than there is left";
  drop(0, 100, 40);
  EXPECT_THROW(drop(40, 30, 10), malformed) << "an end before its beginning";
}

// A library that is loaded late brings code of its own.
TEST(travelling_code, is_found_also_if_it_came_after_others_were_looked_for) {
  static const char module[8] = {};
  detail::wire_type type{};
  type.name = [] { return "late"; };
  EXPECT_EQ(detail::travelling_code::find(12345), nullptr);
  static const detail::wire_type late = type;
  static const detail::travelling_code code(late, module);
  EXPECT_EQ(detail::travelling_code::find(code.identity()), &late);
  EXPECT_EQ(detail::travelling_code::find(12345), nullptr);
}

}  // namespace
}  // namespace strata::cluster
