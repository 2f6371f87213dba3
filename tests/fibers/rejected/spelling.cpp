// SPDX-License-Identifier: Apache-2.0
// What a number as the first argument of a call means, and what it cannot, one for each value of
// REJECTED; with 0 all is well. As addresses.cpp: compiled by the tests only, never run.
#include <concepts>
#include <strata/call.hpp>
#include <strata/fiber.hpp>
#include <strata/group.hpp>
#include <strata/remote_thread.hpp>
#include <strata/resource.hpp>
#include <strata/shared_task.hpp>
#include <string>

double distance(double from, double to) { return to - from; }
int squared(int x) { return x * x; }
struct counted {
  int count() const { return 1; }
};
void nothing() {}
void of_group(strata::group&) {}
int length_of_text(std::string text) { return static_cast<int>(text.size()); }
struct measuring : strata::threaded {
  std::string text;
  void start() { terminate(); }
};
inline constexpr auto sum = [](auto... all) { return (0 + ... + all); };
inline constexpr auto shifted = [](int x, int by = 1) { return x + by; };

template <class Made, auto Function, class... Arguments>
constexpr bool stays_to_be_made =
    std::same_as<Made, strata::travelling_call<Function, Arguments...>>;

void refused([[maybe_unused]] unsigned there) {
#if REJECTED == 0
  // Which node: what the function cannot be called with.
  static_assert(std::same_as<decltype(strata::call<&distance>(2, 1.0, 2.0)), double>);
  static_assert(std::same_as<decltype(strata::call<squared>(there, 3)), int>);
  static_assert(std::same_as<decltype(strata::call<nothing>(strata::node_id_t{1})), void>);
  static_assert(std::same_as<decltype(strata::call<squared>(strata::on_node{1}, 3)), int>);
  // An argument: what it can be called with, whatever else it could be called with.
  static_assert(stays_to_be_made<decltype(strata::call<squared>(2)), squared, int>);
  static_assert(stays_to_be_made<decltype(strata::call<distance>(2, 1.0)), distance, int, double>);
  static_assert(stays_to_be_made<decltype(strata::call<sum>(2, 3)), sum, int, int>);
  static_assert(stays_to_be_made<decltype(strata::call<shifted>(2, 3)), shifted, int, int>);
  static_assert(std::same_as<decltype(strata::call<sum>(strata::on_node{2}, 3)), int>);
  strata::remote_thread(there, strata::call<squared>(3)).detach();
  strata::remote_thread(
      2, [](int) {}, 3)
      .detach();
  strata::shared_task(2, strata::call<squared>(3)).join();
  strata::run_group(2, [](strata::group&) {});
  strata::run_group(
      2, [](strata::group&, double) {}, there);
#elif REJECTED == 1  // it is one argument too many
  strata::call<squared>(true, 3);
#elif REJECTED == 2
  strata::call<squared>('a', 3);
#elif REJECTED == 3
  strata::call<squared>(1, 2, 3);
#elif REJECTED == 4  // a function known at run time
  strata::remote_thread(1, squared, 3).detach();
#elif REJECTED == 6  // a node's number that is one more argument: nobody makes the call
  strata::call<sum>(2, 1, 1);
#elif REJECTED == 7  // an argument that owns memory
  strata::fork2join([] {}, strata::call<length_of_text>(std::string("text")));
#elif REJECTED == 8  // what it refers to stays here
  strata::remote_thread(1, [&] { return there; }).detach();
#elif REJECTED == 9
  strata::on_every_node([there] { return there; });
#elif REJECTED == 10  // a member, of which there is none without an object
  (void)strata::call<&counted::count>(strata::on_node{1}, counted());
#elif REJECTED == 11
  strata::run_group(2, of_group);
#elif REJECTED == 12
  strata::run_group(2, [&](strata::group&) { nothing(); });
#elif REJECTED == 13
  strata::run_group(2, [](strata::group&, int) {});
#elif REJECTED == 14  // an array, which is no value
  strata::fork2join([] {}, strata::call<length_of_text>("text"));
#elif REJECTED == 15
  strata::remote_thread(
      1, [](std::string) {}, "text")
      .detach();
#elif REJECTED == 16
  strata::token<measuring>("text");
#elif REJECTED == 17  // what a function returns, as of one that has been called already
  strata::fork2join(squared(2), squared(3));
#elif REJECTED == 18
  strata::fork2join_inline([] {}, squared(3));
#elif REJECTED == 19
  strata::resource<counted>::find("hits").call<&counted::count>(3);
#elif REJECTED == 5
  strata::remote_thread(1.0, [] {}).detach();
#endif
}
