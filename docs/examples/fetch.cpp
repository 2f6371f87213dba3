#include <cstdio>
#include <functional>
#include <strata/fiber.hpp>
#include <strata/group.hpp>
#include <strata/runtime.hpp>
#include <vector>

// Reads any node's memory; that node's program takes no part.
std::vector<long> fetch(strata::global_ptr<long> from, std::size_t count) {
  std::vector<long> here(count);
  strata::completion arrived;
  strata::block_move_sync(from, strata::to_global(here.data()), count, arrived.sptr());
  arrived.wait();
  return here;
}

int main(int argc, char** argv) {
  strata::runtime runtime(argc, argv);
  runtime.run([] {
    strata::run_group(1, [](strata::group& all) {
      std::vector<long> table(1000, all.rank());
      const auto tables = all.all_gather(strata::to_global(table.data()));  // where everybody's is
      const unsigned next = (all.rank() + 1) % all.size();
      const long last = fetch(tables[next] + 990, 10).back();
      const long sum = all.all_reduce(last, std::plus<>());  // by then everybody has read
      if (all.rank() == 0) std::printf("%ld in all\n", sum);
    });
  });
}
