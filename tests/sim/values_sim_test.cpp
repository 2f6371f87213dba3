// SPDX-License-Identifier: Apache-2.0
// Values of unusual types on their way between simulated nodes, by everything that carries some:
// they are trivially copyable, and that is all that is asked of them.
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "../common/slow_builds.hpp"
#include "program_job.hpp"
#include "strata/directory.hpp"
#include "strata/fiber.hpp"
#include "strata/mailbox.hpp"
#include "strata/message.hpp"
#include "strata/remote_thread.hpp"
#include "strata/resource.hpp"
#include "strata/task_scope.hpp"

namespace strata::test {
namespace {

template <class T>
T handed_back(const T& value) {
  return value;
}

template <class T>
T found_by_name() {
  return await_name<T>("value");
}

template <class T>
struct puts_back : threaded {
  T value;
  global_ptr<T> to;
  slot_ptr done;
  void start() {
    put_sync(value, to, done);
    terminate();
  }
};

template <class T>
struct holder {
  explicit holder(const T& v) : value(v) {}
  T value;
  [[nodiscard]] T get() const { return value; }
};

// Node 0 has `value` sent around, and `other` where one has to come.
template <class T>
void expect_to_travel(const T& value, const T& other) {
  // A program that is not optimised has room for each value that it names, and of a call's.
  program_job p(1, {.nodes = 2, .stack_bytes = std::size_t{1} << 20});
  bool may_end = false;
  p.begin(0, [&] {
    // ---- calls ----
    EXPECT_EQ(call<handed_back<T>>(on_node{1}, value), value);
    const auto [left, right] = fork2join(call<handed_back<T>>(value), call<handed_back<T>>(other));
    EXPECT_EQ(left, value);
    EXPECT_EQ(right, other);
    task_scope scope;
    auto child = scope.spawn(call<handed_back<T>>(value));
    scope.sync();
    EXPECT_EQ(child.get(), value);
    remote_thread(1, call<handed_back<T>>(value)).join();

    // ---- tokens and split-phase operations ----
    auto back = std::make_unique<T>(other);
    for (const node_id_t n : {0, 1}) {
      completion done;
      invoke<puts_back<T>>(on_node{n}, value, to_global(back.get()), done.sptr());
      done.wait();
      EXPECT_EQ(*back, value);
      back = std::make_unique<T>(other);
    }
    completion ran;
    token<puts_back<T>>(value, to_global(back.get()), ran.sptr());
    ran.wait();
    EXPECT_EQ(*back, value);
    const auto got = std::make_unique<T>(other);
    completion fetched;
    get_sync(to_global(back.get()), got.get(), fetched.sptr());
    fetched.wait();
    EXPECT_EQ(*got, value);

    // ---- what node 1 sends here ----
    completion arrived;
    mailbox box(arrived.sptr());
    endpoint mine;
    const named<holder<T>> object("object", value);
    publish("mine", mine.id());
    publish("box", to_global(&box));
    EXPECT_EQ(mine.receive_value<T>(), value);
    arrived.wait();
    EXPECT_EQ(retrieve_item<T>(box), value);
    while (!may_end) p.pause(program_job::ms);
  });
  p.begin(1, [&] {
    if constexpr (sizeof(T) <= detail::published_bytes_max) {
      publish("value", value);
      EXPECT_EQ(call<found_by_name<T>>(on_node{0}), value);
    }
    endpoint mine;
    mine.send_value(await_name<endpoint_id>("mine"), 0, value);
    drop_in(await_name<global_ptr<mailbox>>("box"), value);
    EXPECT_EQ(resource<holder<T>>::await("object").template call<&holder<T>::get>(), value);
    may_end = true;
  });
  p.run();
}

// & of one is the address of something else.
struct oddly_addressed {
  int number;
  const int* operator&() const { return nullptr; }
  friend bool operator==(const oddly_addressed&, const oddly_addressed&) = default;
};

TEST(simulated_values, travel_whatever_their_address_operator_says) {
  expect_to_travel(oddly_addressed{3}, oddly_addressed{4});
}

struct point {
  point(double px, double py) : x(px), y(py) {}
  double x, y;
  friend bool operator==(const point&, const point&) = default;
};
struct unchanging {
  explicit unchanging(int n) : number(n) {}
  const int number;
  friend bool operator==(const unchanging&, const unchanging&) = default;
};
// More than a call carries.
struct large {
  explicit large(int n) { numbers.fill(n); }
  std::array<int, 5000> numbers;
  friend bool operator==(const large&, const large&) = default;
};
static_assert(sizeof(large) > detail::travelling_bytes_max);

TEST(simulated_values, travel_without_a_default_constructor) {
  expect_to_travel(point(1, 2), point(3, 4));
  expect_to_travel(unchanging(3), unchanging(4));
  // Each of a function's values has room of its own there: together they are larger than a stack.
  if (!address_sanitizer) expect_to_travel(large(5), large(6));
}

// A type that is found in memory where it says.
struct alignas(64) wide {
  int number;
};
bool is_aligned_for_all(const wide& a, char, const wide& b) {
  for (const wide* const one : {&a, &b})
    if (reinterpret_cast<std::uintptr_t>(one) % alignof(wide) != 0) return false;
  return a.number == 3 && b.number == 4;
}

TEST(simulated_values, lie_where_a_call_can_use_them) {
  program_job p(1, {.nodes = 2});
  p.begin(0, [] {
    for (int round = 0; round < 8; ++round)
      EXPECT_TRUE(call<is_aligned_for_all>(on_node{1}, wide{3}, 'x', wide{4}));
  });
  p.run();
}

// T() is all that is asked of them, not T{}.
TEST(value_room, is_for_all_that_can_be_made_by_default) {
  struct name {
    explicit name(int n = 7) : number(n) {}
    int number;
  };
  struct order {
    std::string text;
    name who;
  };
  EXPECT_EQ(detail::value_room<order>().value.who.number, 7);
}

}  // namespace
}  // namespace strata::test
