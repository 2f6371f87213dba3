// SPDX-License-Identifier: Apache-2.0
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "apps/common/program.hpp"
#include "apps/fib/fibers.hpp"
#include "apps/fib/fork_join.hpp"
#include "apps/fib/serial.hpp"

namespace {

int body(apps::program& p) {
  unsigned n = 0;
  p.cli()
      .add("N", n, "which Fibonacci number, 0 to 93; beyond, the value does not fit 64 bits")
      .required()
      .check(apps::whole_number(0, fib::n_max, "fib(94) does not fit 64 bits"));
  p.offer_styles({apps::style::fork_join, apps::style::fibers, apps::style::serial});
  p.parse();

  const std::uint64_t value = p.timed([&] {
    switch (p.how()) {
      case apps::style::fork_join:
        return fib::fork_join(n);
      case apps::style::fibers:
        return fib::fibers(n);
      case apps::style::serial:
        break;
    }
    return fib::serial(n);
  });
  const double calls = fib::calls(n);
  std::printf("fib(%u) = %" PRIu64 "  (%.3f s, %.2f ns per call)\n", n, value, p.seconds(),
              p.seconds() * 1e9 / calls);
  nlohmann::json result = {{"value", value}};
  if (calls < 0x1p64) result["calls"] = static_cast<std::uint64_t>(calls);
  return p.finish({{"n", n}}, result, value == fib::closed_form(n));
}

}  // namespace

int main(int argc, char** argv) {
  return apps::run_program("fib", "A Fibonacci number by its definition, one task per call.", argc,
                           argv, body);
}
