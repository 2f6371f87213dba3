// SPDX-License-Identifier: Apache-2.0
// Data moved by PUT_SYNC, GET_SYNC and block moves is there when the signal is; global pointers
// reach memory in no other way.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <concepts>
#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include "../sched/support.hpp"
#include "strata/fiber.hpp"
#include "strata/task_scope.hpp"

namespace strata::test {
namespace {

template <class P>
concept dereferences = requires(P p) {
  *p;
};
template <class P>
concept has_members = requires(P p) {
  p.operator->();
};
template <class P>
concept indexes = requires(P p) {
  p[0];
};
static_assert(dereferences<int*> && indexes<int*>);
static_assert(!dereferences<global_ptr<int>>);
static_assert(!has_members<global_ptr<std::string>>);
static_assert(!indexes<global_ptr<int>>);
static_assert(!std::convertible_to<global_ptr<int>, int*>);
static_assert(!std::convertible_to<int*, global_ptr<int>>);
static_assert(!std::convertible_to<global_ptr<int>, global_ptr<long>>);
static_assert(!dereferences<slot_ptr>);
// What may be written may be read, and no more than that.
static_assert(std::convertible_to<global_ptr<int>, global_ptr<const int>>);
static_assert(!std::convertible_to<global_ptr<const int>, global_ptr<int>>);
static_assert(!std::convertible_to<global_ptr<std::array<int, 2>>, global_ptr<int>>);
// Both travel in tokens.
static_assert(sizeof(global_ptr<int>) == 8 && std::is_trivially_copyable_v<global_ptr<int>>);
static_assert(sizeof(slot_ptr) == 8 && std::is_trivially_copyable_v<slot_ptr>);

TEST(global_pointers, know_their_node_and_address) {
  options o = with_workers(1);
  o.node = 7;
  runtime rt(o);
  rt.run([] {
    std::array<int, 10> items{};
    const global_ptr<int> p = to_global(items.data());
    EXPECT_EQ(node_id(), 7);
    EXPECT_EQ(p.node(), 7);
    EXPECT_EQ(owner_of(p), 7);
    EXPECT_EQ(p.local(), items.data());
    EXPECT_EQ((p + 3).local(), &items[3]);
    EXPECT_EQ(p + 3 + -3, p);
    EXPECT_NE(p + 1, p);
    global_ptr<int> q = p + 9;
    EXPECT_EQ(q - p, 9);
    EXPECT_EQ(p - q, -9);
    EXPECT_EQ(q - 9, p);
    EXPECT_EQ(9 + p, q);
    EXPECT_EQ((q -= 4), p + 5);
    EXPECT_EQ((q += 2), p + 7);
    EXPECT_EQ(++q, p + 8);
    EXPECT_EQ(--q, p + 7);
    EXPECT_EQ(q++, p + 7);
    EXPECT_EQ(q--, p + 8);
    EXPECT_EQ(q.local(), &items[7]);
    EXPECT_LT(p, q);
    EXPECT_GE(q, q);
    const global_ptr<const int> read = q;
    EXPECT_EQ(read, q);
    EXPECT_EQ(read - p, 7);
    EXPECT_GT(read, p);
    EXPECT_TRUE(p);
    EXPECT_FALSE(global_ptr<int>());
    EXPECT_EQ(global_ptr<int>(), global_ptr<int>());
    const global_ptr<int> elsewhere(8, items.data());
    EXPECT_NE(elsewhere, p);
    EXPECT_EQ(elsewhere.node(), 8);
    EXPECT_THROW(static_cast<void>(elsewhere.local()), misuse_error);
    EXPECT_LT(p, elsewhere) << "by node first";
    completion done;
    EXPECT_THROW(put_sync(1, elsewhere, done.sptr()), misuse_error);
    EXPECT_THROW(put_sync(1, global_ptr<int>(node_id(), nullptr), done.sptr()), misuse_error);
    EXPECT_THROW(sync(slot_ptr(8, &done)), misuse_error);
    EXPECT_EQ(done.sptr().node(), 7);
    sync(done.sptr());
    done.wait();
  });
  EXPECT_EQ(num_nodes(), 1u);
}

TEST(invoke, takes_an_address_that_says_that_it_is_meant) {
  struct stays : threaded {
    int* where;
    slot_ptr done;
    void start() {
      *where += 1;
      sync(done);
      terminate();
    }
  };
  static_assert(std::is_trivially_copyable_v<local_address<int*>>);
  static_assert(!std::is_default_constructible_v<local_address<std::reference_wrapper<int>>>);
  runtime rt(with_workers(1));
  rt.run([] {
    int here = 7;
    completion raised, put;
    invoke<stays>(node_id(), local_address(&here), raised.sptr());
    raised.wait();
    EXPECT_EQ(here, 8);
    local_address<int*> place;
    EXPECT_EQ(place.get(), nullptr);
    put_sync(local_address(&here), to_global(&place), put.sptr());
    put.wait();
    EXPECT_EQ(place.get(), &here);
  });
  EXPECT_EQ(rt.stats().live_frames, 0);
}

TEST(invoke, names_the_node_that_it_cannot_find) {
  struct nothing : threaded {
    void start() { terminate(); }
  };
  runtime rt(with_workers(1));
  rt.run([] {
    try {
      invoke<nothing>(3);
      FAIL();
    } catch (const misuse_error& e) {
      EXPECT_NE(std::string(e.what()).find("no node 3"), std::string::npos) << e.what();
    }
  });
  EXPECT_EQ(rt.stats().live_frames, 0);
}

// Many words, so that a reader that came too early would see some of them old.
struct message {
  std::array<std::uint64_t, 200> word;
  static message of(std::uint64_t n) {
    message m;
    m.word.fill(n);
    return m;
  }
  [[nodiscard]] bool is(std::uint64_t n) const {
    for (const std::uint64_t w : word)
      if (w != n) return false;
    return true;
  }
};

enum class way { put, get, block };

struct sender : threaded {
  way how;
  global_ptr<message> to;
  slot_ptr arrived;
  std::uint64_t number;
  message mine;

  void start() {
    switch (how) {
      case way::put:
        put_sync(message::of(number), to, arrived);
        return terminate();
      case way::get:
        // Fetched here from the token's argument, then passed on.
        mine = message::of(number);
        return get_sync<message>(to_global(&mine), to.local(), to_sptr(FETCHED));
      case way::block:
        mine = message::of(number);
        block_move_sync(to_global(&mine), to, 1, to_sptr(FETCHED));
    }
  }
  void fetched() {
    sync(arrived);
    terminate();
  }
  fiber<&sender::fetched> FETCHED{this, 1};
};

// Two messages travel at the same time; the fiber sees both or has not begun.
struct receiver : threaded {
  way how;
  int rounds;
  std::atomic<int>* wrong;
  slot_ptr done;
  std::uint64_t number;
  message a, b;

  void start() {
    number = 1;
    next();
  }
  void next() {
    token<sender>(how, to_global(&a), to_sptr(BOTH), number);
    token<sender>(how, to_global(&b), to_sptr(BOTH), number + 1);
  }
  void both() {
    if (!a.is(number) || !b.is(number + 1)) ++*wrong;
    number += 2;
    if (--rounds > 0) return next();
    sync(done);
    terminate();
  }
  fiber<&receiver::both> BOTH{this, 2, 2};
};

class transfer : public ::testing::TestWithParam<way> {};
std::string name_of(const ::testing::TestParamInfo<way>& tested) {
  constexpr std::array names{"put", "get", "block"};
  return names[static_cast<std::size_t>(tested.param)];
}
INSTANTIATE_TEST_SUITE_P(ways, transfer, ::testing::Values(way::put, way::get, way::block),
                         name_of);

TEST_P(transfer, is_complete_before_its_signal) {
  for (const unsigned workers : {1U, 2U, 4U, 8U}) {
    runtime rt(with_workers(workers));
    std::atomic<int> wrong{0};
    rt.run([&] {
      constexpr int frames = 16;
      completion done(frames);
      for (int i = 0; i < frames; ++i) {
        token<receiver>(GetParam(), scaled(500, 60), &wrong, done.sptr());
      }
      done.wait();
    });
    EXPECT_EQ(wrong, 0);
    rt.wait_idle();
    EXPECT_EQ(rt.stats().live_frames, 0);
  }
}

TEST(transfers, blocks_of_any_length) {
  runtime rt(with_workers(2));
  rt.run([] {
    for (const std::size_t n : {0U, 1U, 7U, 4096U}) {
      std::vector<int> from(n);
      for (std::size_t i = 0; i < n; ++i) from[i] = static_cast<int>(i);
      std::vector<int> to(n + 1, -1);
      completion done;
      block_move_sync(to_global(from.data()), to_global(to.data()), n, done.sptr());
      done.wait();
      EXPECT_EQ(to.back(), -1);
      to.pop_back();
      EXPECT_EQ(to, from);
    }
  });
}

TEST(transfers, from_constant_memory) {
  runtime rt(with_workers(1));
  rt.run([] {
    const std::array<int, 3> from{1, 2, 3};
    std::array<int, 3> to{};
    int one = 0;
    completion done(2);
    block_move_sync<int>(to_global(from.data()), to_global(to.data()), 3, done.sptr());
    get_sync<int>(to_global(&from[1]), &one, done.sptr());
    done.wait();
    EXPECT_EQ(to, from);
    EXPECT_EQ(one, 2);
  });
}

// A task that waits sees everything that happened before each of the signals.
TEST(transfers, a_completion_shows_what_all_senders_did) {
  runtime rt(with_workers(4));
  for (int round = 0; round < scaled(300, 50); ++round) {
    rt.run([&] {
      std::array<message, 8> box{};
      completion done(box.size());
      for (std::size_t i = 0; i < box.size(); ++i) {
        token<sender>(way::put, to_global(&box[i]), done.sptr(), std::uint64_t{i + 1});
      }
      done.wait();
      for (std::size_t i = 0; i < box.size(); ++i) ASSERT_TRUE(box[i].is(i + 1));
    });
  }
}

}  // namespace
}  // namespace strata::test
