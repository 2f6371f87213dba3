#include <cstdio>
#include <strata/call.hpp>
#include <strata/parallel.hpp>
#include <strata/runtime.hpp>
long fib(int n) {
  if (n < 2) return n;
  auto [a, b] = strata::fork2join(strata::call<fib>(n - 1), strata::call<fib>(n - 2));
  return a + b;
}

int main(int argc, char** argv) {
  strata::runtime runtime(argc, argv);
  runtime.run([] {
    std::printf("fib(30) = %ld\n", fib(30));
    const long sum = strata::parallel_reduce(
        0, 1'000'000, 0L, [](int i) { return long{i % 7}; }, [](long a, long b) { return a + b; });
    std::printf("sum = %ld\n", sum);
  });
}
