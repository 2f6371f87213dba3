#include <strata/runtime.hpp>
#include <strata/thread.hpp>

#include <cstdio>
#include <mutex>
#include <vector>

int main(int argc, char** argv) {
  strata::runtime rt(argc, argv);
  rt.run([] {
    strata::mutex m;
    int sum = 0;
    std::vector<strata::thread> all;
    for (int i = 0; i < 100'000; ++i) all.emplace_back([&] { std::lock_guard lock(m); ++sum; });
    for (auto& t : all) t.join();
    std::printf("%d\n", sum);
  });
}
