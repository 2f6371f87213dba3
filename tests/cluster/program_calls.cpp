// SPDX-License-Identifier: Apache-2.0
#include "program_calls.hpp"

#include <sys/personality.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "program_support.hpp"
#include "strata/call.hpp"
#include "strata/fork_join.hpp"
#include "strata/remote_thread.hpp"
#include "strata/task_scope.hpp"
#include "tests/common/require.hpp"

namespace {

using namespace strata;
using test::require;
using test::slow_here;

long fib_by_calls(int n) {
  if (n < 2) return n;
  const auto [a, b] = fork2join([n] { return fib_by_calls(n - 1); }, call<fib_by_calls>(n - 2));
  return a + b;
}

// A third of them throw, wherever they are made.
struct odd_one : std::runtime_error {
  explicit odd_one(int n) : std::runtime_error(std::to_string(n)) {}
};
node_id_t slow_or_odd(int n) {
  const node_id_t here = slow_here(n);
  if (n % 3 == 0) throw odd_one(n);
  return here;
}
void slow_for_nobody(int n) { (void)slow_here(n); }
long tree_of_scopes(int depth) {
  if (depth == 0) return 1;
  task_scope scope;
  std::vector<spawned<long>> parts;
  for (int i = 0; i < 3; ++i) parts.push_back(scope.spawn(call<tree_of_scopes>(depth - 1)));
  scope.sync();
  long sum = 0;
  for (auto& p : parts) sum += p.get();
  return sum;
}

// On the node that makes the call.
std::uintptr_t place_of_code(int) { return reinterpret_cast<std::uintptr_t>(&place_of_code); }

bool is_randomised() {
  int setting = 0;
  std::ifstream("/proc/sys/kernel/randomize_va_space") >> setting;
  const int now = ::personality(0xffffffffU);  // asks, changes nothing
  return setting != 0 && now >= 0 && (now & ADDR_NO_RANDOMIZE) == 0;
}

}  // namespace

void calls(runtime& rt) {
  require(rt.run([] { return fib_by_calls(27); }) == 196418, "fib(27)");
  // Until one has really been made elsewhere.
  bool travelled = false;
  for (int i = 0; i < 10'000 && !travelled; ++i) {
    rt.run([&] {
      const auto [a, b] = fork2join([] { return slow_here(0); }, call<slow_here>(1));
      travelled |= b != a;
    });
  }
  require(travelled, "a call was made on another node");
}

void scopes(runtime& rt) {
  require(rt.run([] { return tree_of_scopes(7); }) == 2187, "leaves of a tree");
  bool travelled = false, threw_here = false, threw_elsewhere = false;
  for (int i = 0; i < 10'000 && !(travelled && threw_here && threw_elsewhere); ++i) {
    rt.run([&] {
      task_scope scope;
      std::vector<spawned<node_id_t>> made;
      int plain = 0;
      for (int n = 1; n <= 8; ++n) {
        if (n % 3 != 0) made.push_back(scope.spawn(call<slow_or_odd>(n)));
        scope.spawn(call<slow_for_nobody>(n));
      }
      scope.spawn([&plain] { plain = 7; });
      scope.sync();
      require(plain == 7, "a child that stays");
      for (auto& m : made) travelled |= m.get() != node_id();
      // The oldest is taken first, the newest hardly ever.
      if (i % 2 == 0) scope.spawn(call<slow_or_odd>(3));
      for (int n = 1; n <= 4; ++n) scope.spawn(call<slow_for_nobody>(n));
      if (i % 2 != 0) scope.spawn(call<slow_or_odd>(6));
      try {
        scope.sync();
        require(false, "one of them throws");
      } catch (const remote_error& e) {
        threw_elsewhere = true;
        require(e.type_name().find("odd_one") != std::string::npos, "its type");
        require(std::stoi(e.message()) % 3 == 0, "its words");
      } catch (const odd_one&) {
        threw_here = true;
      }
    });
  }
  require(travelled, "a call was made on another node");
  require(threw_here && threw_elsewhere, "calls threw here and elsewhere");
}

// Calls find their code on nodes where it lies elsewhere.
void code_elsewhere(runtime& rt) {
  const auto there = rt.run([] { return call<place_of_code>(on_node{1}, 0); });
  if (is_randomised()) {
    require(there != place_of_code(0), "node 1 has its code at another address");
  } else {
    std::puts("addresses are fixed here");
  }
}
