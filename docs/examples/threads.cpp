#include <cstdio>
#include <strata/runtime.hpp>
#include <strata/thread.hpp>
#include <vector>
int main(int argc, char** argv) {
  strata::runtime runtime(argc, argv);
  runtime.run([] {
    strata::mutex mutex;
    strata::condition_variable changed;
    int turn = 0;
    std::vector<strata::thread> threads;
    for (int i = 0; i < 1000; ++i) {
      threads.emplace_back([&, i] {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return turn == i; });  // one after the other
        ++turn;
        changed.notify_all();
      });
    }
    for (strata::thread& t : threads) t.join();
    std::printf("%d turns\n", turn);
  });
}
