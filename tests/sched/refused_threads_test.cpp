// SPDX-License-Identifier: Apache-2.0
// A runtime to which the system refuses one of its threads. Stands in front of pthread_create().
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <string>

#include "strata/error.hpp"
#include "support.hpp"

namespace {
constinit std::atomic<int> threads_left{1'000'000};
}

extern "C" int pthread_create(pthread_t* made, const pthread_attr_t* how, void* (*body)(void*),
                              void* argument) {
  static const auto system_one =
      reinterpret_cast<decltype(&pthread_create)>(::dlsym(RTLD_NEXT, "pthread_create"));
  return threads_left.fetch_sub(1) > 0 ? system_one(made, how, body, argument) : EAGAIN;
}

namespace strata::test {
namespace {

// Two workers, and the thread that answers the signal.
options with_three_threads() {
  options wanted = with_workers(2);
  wanted.dump_signal = "USR1";
  return wanted;
}

TEST(refused_threads, are_an_error_whichever_it_is) {
  for (int given = 0; given < 3; ++given) {
    threads_left = given;
    try {
      const runtime rt(with_three_threads());
      ADD_FAILURE() << given << " threads suffice";
    } catch (const error& e) {
      EXPECT_NE(std::string(e.what()).find("cannot make a thread of the runtime"),
                std::string::npos)
          << e.what();
    }
  }
  threads_left = 3;
  runtime rt(with_three_threads());
  EXPECT_EQ(rt.run([] { return 42; }), 42);
  raise(SIGUSR1);  // would end the process if nobody answered it
}

}  // namespace
}  // namespace strata::test
