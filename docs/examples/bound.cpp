#include <algorithm>
#include <atomic>
#include <cstdio>
#include <strata/call.hpp>
#include <strata/fiber.hpp>
#include <strata/membership.hpp>
#include <strata/runtime.hpp>
// A knapsack: what is the most that items of these weights and values are worth together?
constexpr int items = 30;
constexpr int weight(int i) { return 20 + 3 * i; }
constexpr int value(int i) { return weight(i) + 10; }  // so the first have most for their weight

std::atomic<int> best{0};  // one on each node: the best that it has found or heard of

bool raise(int found) {
  int known = best.load(std::memory_order_relaxed);
  while (known < found)
    if (best.compare_exchange_weak(known, found, std::memory_order_relaxed)) return true;
  return false;
}

struct heard : strata::threaded {  // begun on the nodes that are told
  int found;
  void start() {
    raise(found);
    terminate();
  }
};

// What items from i on can be worth at most in this room: the last one may be cut.
int bound(int i, int room) {
  int sum = 0;
  for (; i < items && weight(i) <= room; room -= weight(i++)) sum += value(i);
  return i < items ? sum + value(i) * room / weight(i) : sum;
}

int visit(int i, int room, int sum) {
  if (i == items) {
    if (raise(sum))
      for (const strata::node_id_t m : strata::members())
        if (m != strata::node_id()) strata::invoke<heard>(m, sum);
    return sum;
  }
  if (sum + bound(i, room) <= best.load(std::memory_order_relaxed)) return 0;
  if (weight(i) > room) return visit(i + 1, room, sum);
  const auto [with, without] =
      strata::fork2join(strata::call<visit>(i + 1, room - weight(i), sum + value(i)),
                        strata::call<visit>(i + 1, room, sum));
  return std::max(with, without);
}

int main(int argc, char** argv) {
  strata::runtime runtime(argc, argv);
  int room = 0;
  for (int i = 0; i < items; ++i) room += weight(i);
  std::printf("worth %d\n", runtime.run([&] { return visit(0, room / 2, 0); }));
}
