// SPDX-License-Identifier: Apache-2.0
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "apps/common/program.hpp"
#include "apps/nqueens/board.hpp"
#include "apps/nqueens/fibers.hpp"
#include "apps/nqueens/fork_join.hpp"

namespace {

int body(apps::program& p) {
  unsigned n = 0;
  unsigned throttle = nqueens::n_max;
  p.cli()
      .add("N", n, "queens, and the side of the board, 1 to 27")
      .required()
      .check(apps::whole_number(1, nqueens::n_max,
                                "27 is the largest board whose count is known to fit 64 bits"));
  p.cli()
      .add("--throttle", throttle,
           "rows from D on are searched serially; without it every safe placement is a task")
      .type_name("D")
      .check(apps::whole_number(0, nqueens::n_max, "D counts rows"));
  p.prefer_on_several_nodes(apps::style::fibers);
  p.offer_styles({apps::style::fork_join, apps::style::fibers, apps::style::serial});
  p.parse();

  const std::uint64_t solutions = p.timed([&] {
    switch (p.how()) {
      case apps::style::fork_join:
        return nqueens::fork_join_search(n, throttle)();
      case apps::style::fibers:
        return nqueens::fibers(n, throttle);
      case apps::style::serial:
        break;
    }
    return nqueens::serial(n);
  });
  std::printf("%u queens: %" PRIu64 " solutions  (%.3f s)\n", n, solutions, p.seconds());
  nlohmann::json parameters = {{"n", n}};
  if (throttle < n && p.how() != apps::style::serial) parameters["throttle"] = throttle;
  return p.finish(parameters, {{"solutions", solutions}}, solutions == nqueens::known_solutions(n));
}

}  // namespace

int main(int argc, char** argv) {
  return apps::run_program("nqueens",
                           "Counts the ways to place N queens, one task per safe placement.", argc,
                           argv, body);
}
