#include <cstdio>
#include <strata/call.hpp>
#include <strata/fork_join.hpp>
#include <strata/runtime.hpp>
#include <strata/shared_best.hpp>
// A knapsack: what is the most that items of these weights and values are worth together?
constexpr int items = 30;
constexpr int weight(int i) { return 20 + 3 * i; }
constexpr int value(int i) { return weight(i) + 10; }  // so the first have most for their weight

// What items from i on can be worth at most in this room: the last one may be cut.
int bound(int i, int room) {
  int sum = 0;
  for (; i < items && weight(i) <= room; room -= weight(i++)) sum += value(i);
  return i < items ? sum + value(i) * room / weight(i) : sum;
}

void visit(int i, int room, int sum, strata::best_handle<int> all) {
  const strata::best_here<int> best = all.here();  // what the node knows that makes this call
  for (; i < items && sum + bound(i, room) > best.value(); ++i) {
    if (weight(i) > room) continue;
    strata::fork2join(strata::call<visit>(i + 1, room - weight(i), sum + value(i), all),
                      strata::call<visit>(i + 1, room, sum, all));
    return;
  }
  best.improve(sum);  // if it is better, the other nodes will hear of it
}

int main(int argc, char** argv) {
  strata::runtime runtime(argc, argv);
  int room = 0;
  for (int i = 0; i < items; ++i) room += weight(i);
  runtime.run([&] {
    strata::shared_best<int> best(0);
    visit(0, room / 2, 0, best.handle());
    std::printf("worth %d\n", best.of_all_nodes());
  });
}
