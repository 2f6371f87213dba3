#include <cstdio>
#include <stdexcept>
#include <strata/runtime.hpp>
#include <strata/task_scope.hpp>
int half(int n) {
  if (n % 2 != 0) throw std::runtime_error("an odd number");
  return n / 2;
}

int main(int argc, char** argv) {
  strata::runtime runtime(argc, argv);
  runtime.run([] {
    strata::task_scope scope;
    auto a = scope.spawn([] { return half(4); });
    auto b = scope.spawn([] { return half(6); });
    scope.sync();
    std::printf("%d and %d\n", a.get(), b.get());
    scope.spawn([] { (void)half(7); });
    try {
      scope.sync();
    } catch (const std::exception& e) {
      std::printf("a task failed: %s\n", e.what());
    }
  });
}
