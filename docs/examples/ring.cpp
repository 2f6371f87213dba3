#include <cstdio>
#include <strata/group.hpp>
#include <strata/runtime.hpp>
int main(int argc, char** argv) {
  strata::runtime runtime(argc, argv);
  runtime.run([] {
    strata::run_group(3, [](strata::group& all) {
      strata::endpoint& mine = strata::this_thread::endpoint();
      const auto ring = all.members();  // everybody's endpoint, by rank
      const auto next = ring[(all.rank() + 1) % all.size()];
      const auto last = ring[(all.rank() + all.size() - 1) % all.size()];
      if (all.rank() == 0) {
        mine.send_value(next, 0, 1);
        std::printf("%d threads\n", mine.receive_value<int>(last));
      } else {
        mine.send_value(next, 0, mine.receive_value<int>(last) + 1);
      }
    });
  });
}
