// SPDX-License-Identifier: Apache-2.0
// Addresses that would be sent to another node, one for each value of REJECTED; with 0 all is well.
// As rejected.cpp: compiled by the tests only, never run. What is well is there with 0 alone: it
// takes longer to read than a case.
#include <array>
#include <cstddef>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <strata/detail/address.hpp>
#include <strata/fiber.hpp>
#include <strata/grid.hpp>
#include <strata/group.hpp>
#include <strata/mailbox.hpp>
#include <strata/message.hpp>
#include <strata/remote_thread.hpp>
#include <strata/resource.hpp>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

struct pair_of_numbers {
  int first, second;
};

#if REJECTED == 0
template <class... T>
constexpr bool all_are_addresses = (strata::detail::memory_address<T> && ...);
template <class... T>
constexpr bool none_is_an_address = !(strata::detail::memory_address<T> || ...);
static_assert(all_are_addresses<int*, const char*, void*, int* const, void (*)(int), int**>);
static_assert(all_are_addresses<int pair_of_numbers::*, void (pair_of_numbers::*)() const>);
static_assert(
    all_are_addresses<std::reference_wrapper<int>, std::span<int>, std::span<const int, 3>,
                      std::string_view, std::u16string_view, std::initializer_list<int>>);
static_assert(all_are_addresses<int* [3], int* [2][2], std::array<const char*, 2>,
                                std::array<std::array<std::string_view, 1>, 2>>);
static_assert(all_are_addresses<int&, std::pair<int, int*>, const std::pair<const char* const, int>,
                                std::tuple<int, std::array<int*, 2>>, std::tuple<int&>,
                                std::optional<int*>, std::variant<int, std::span<int>>>);
static_assert(all_are_addresses<std::vector<int*>, std::vector<std::vector<std::string_view>>,
                                std::array<std::vector<const char*>, 2>>);
static_assert(none_is_an_address<void, int, double, std::byte, std::nullptr_t, pair_of_numbers,
                                 std::array<int, 3>, int[3], std::vector<int>>);
static_assert(none_is_an_address<strata::global_ptr<int>, strata::slot_ptr, strata::endpoint_id,
                                 strata::resource<int>, strata::grid>);
static_assert(none_is_an_address<std::pair<int, double>, std::tuple<>, std::tuple<int, char[2]>,
                                 std::optional<strata::slot_ptr>, std::variant<int, double>,
                                 std::pair<strata::global_ptr<int*>, strata::local_address<int*>>>);
#endif

int number_of(strata::global_ptr<int> where) { return where.node(); }
int through(int* where) { return *where; }
int* where_is(int) { return nullptr; }
int length_of(std::string_view text) { return static_cast<int>(text.size()); }
int applied(int (*f)(int), int x) { return f(x); }
int twice(int x) { return 2 * x; }

struct stays : strata::threaded {
  int* where;
  void start() { terminate(); }
};

struct finds : strata::threaded {
  strata::global_ptr<int> where;
  void start() { terminate(); }
};
struct looks : strata::threaded {
  std::array<const char*, 2> where;
  void start() { terminate(); }
};
struct guesses : strata::threaded {
  std::optional<int*> where;
  void start() { terminate(); }
};

void refused(strata::endpoint& mine, strata::endpoint_id to, strata::group& all,
             strata::global_ptr<int*> place, strata::global_ptr<strata::mailbox> box,
             strata::mailbox& own_box, strata::slot_ptr done) {
  int local = 0;
  const std::vector<int> numbers(3);
  const std::vector<int*> places(3);
  int* fetched = nullptr;
  const auto known = strata::resource<int>::find("local");
#if REJECTED == 0
  // What may be sent; and a token that stays may carry an address.
  strata::fork2join([] {}, strata::call<number_of>(strata::to_global(&local)));
  strata::remote_thread(
      strata::on_node{1}, [](int) {}, local)
      .detach();
  mine.send_value(to, 1, local);
  mine.send(to, 1, std::span(numbers));
  static_cast<void>(mine.receive_value<int>());
  strata::publish("local", strata::to_global(&local));
  static_cast<void>(all.broadcast(local, 0));
  strata::token<stays>(&local);
  // Where a node or a place on one is named, only an address that says that it is meant.
  strata::invoke<finds>(1, strata::to_global(&local));
  strata::invoke<stays>(strata::node_id(), strata::local_address(&local));
  strata::invoke<stays>(strata::node_id(), nullptr);
  strata::call<through>(strata::on_node{0}, strata::local_address(&local));
  const strata::global_ptr<strata::local_address<int*>> meant;
  strata::put_sync(strata::local_address(&local), meant, done);
  strata::drop_in(box, strata::local_address(&local));
  known.call<[](int& value, int more) { value += more; }>(1);
#elif REJECTED == 1
  strata::fork2join([] {}, strata::call<through>(&local));
#elif REJECTED == 2
  strata::fork2join([] {}, strata::call<where_is>(1));
#elif REJECTED == 3
  strata::call<length_of>(strata::on_node{1}, std::string_view("text"));
#elif REJECTED == 4
  strata::call<applied>(strata::on_node{1}, &twice, 1);
#elif REJECTED == 5
  strata::remote_thread(
      strata::on_node{1}, [](std::reference_wrapper<int> where) { where.get() = 1; },
      std::ref(local))
      .detach();
#elif REJECTED == 6
  mine.send_value(to, 1, std::span(numbers));
#elif REJECTED == 7
  mine.send(to, 1, places);
#elif REJECTED == 8
  static_cast<void>(mine.receive_value<std::string_view>());
#elif REJECTED == 9
  static_cast<void>(strata::bytes_of(&local));
#elif REJECTED == 10
  strata::publish("local", &local);
#elif REJECTED == 11
  static_cast<void>(strata::await_name<const int*>("local"));
#elif REJECTED == 12
  known.call<[](int& value, const int* from) { value = *from; }>(&local);
#elif REJECTED == 13
  static_cast<void>(all.broadcast(&local, 0));
#elif REJECTED == 14
  strata::invoke<stays>(1, &local);
#elif REJECTED == 15
  strata::invoke<looks>(1, std::array<const char*, 2>{"one", "two"});
#elif REJECTED == 16
  strata::invoke<guesses>(1, std::optional<int*>(&local));
#elif REJECTED == 17
  strata::put_sync(&local, place, done);
#elif REJECTED == 18
  strata::get_sync(place, &fetched, done);
#elif REJECTED == 19
  strata::block_move_sync(place, strata::to_global(&fetched), 1, done);
#elif REJECTED == 20
  strata::drop_in(box, &local);
#elif REJECTED == 21
  static_cast<void>(strata::retrieve_item<std::string_view>(own_box));
#elif REJECTED == 22  // it ends with the call, and the transfer goes on
  static_cast<void>(mine.start_send(to, 1, std::vector<int>(3)));
#endif
  static_cast<void>(fetched);
  static_cast<void>(place);
  static_cast<void>(own_box);
}
