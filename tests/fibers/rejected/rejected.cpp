// SPDX-License-Identifier: Apache-2.0
// Programs that must not compile, one for each value of REJECTED; with 0 all is well, which shows
// that nothing but the line in question is refused. Compiled by the tests only, never run.
#include <strata/fiber.hpp>
#include <strata/fork_join.hpp>
#include <strata/mailbox.hpp>
#include <strata/task_scope.hpp>
#include <string>

struct not_a_frame {
  void start() {}
};
struct plain : strata::threaded {
  int number;
  void start() { terminate(); }
};
struct with_text : strata::threaded {
  std::string text;
  void start() { terminate(); }
};
struct aligned {
  alignas(64) char line[64];
};
struct with_a_line : strata::threaded {
  explicit with_a_line(const aligned&) {}
  void start() { terminate(); }
};

void refused(strata::global_ptr<int> number, strata::global_ptr<std::string> text,
             strata::slot_ptr done, strata::global_ptr<strata::mailbox> box) {
  strata::token<plain>(1);
  strata::put_sync(1, number, done);
  strata::drop_in(box, 1);
  int local = 0;
  strata::fork2join([&] { return &local; }, [] {});
  strata::fork2join_inline([&] { return &local; }, [] {});
  static_cast<void>(text);
#if REJECTED == 1  // an argument that owns memory cannot travel
  strata::token<with_text>(std::string("text"));
#elif REJECTED == 2  // what is activated has a frame
  strata::token<not_a_frame>();
#elif REJECTED == 3  // remote memory is reached by operations only
  *number = 1;
#elif REJECTED == 4
  strata::put_sync(std::string("text"), text, done);
#elif REJECTED == 5
  strata::drop_in(box, std::string("text"));
#elif REJECTED == 6  // a reference would outlive what it names
  strata::fork2join([&]() -> int& { return local; }, [] {});
#elif REJECTED == 7
  strata::task_scope().spawn([a = aligned{}] { static_cast<void>(a); });
#elif REJECTED == 8
  strata::fork2join_inline([&]() -> int& { return local; }, [] {});
#elif REJECTED == 9
  strata::token<with_a_line>(aligned{});
#endif
}
