#include <cstdio>
#include <strata/fiber.hpp>
#include <strata/runtime.hpp>
struct fib : strata::threaded {
  int n;  // the parameters, in the order in which token() passes them
  strata::global_ptr<int> result;
  strata::slot_ptr done;
  int r1, r2;
  void start() {
    if (n <= 1) {
      put_sync(1, result, done);
      terminate();
    } else {
      strata::token<fib>(n - 1, strata::to_global(&r1), to_sptr(READY));
      strata::token<fib>(n - 2, strata::to_global(&r2), to_sptr(READY));
    }
  }
  void ready() {
    put_sync(r1 + r2, result, done);
    terminate();
  }
  strata::fiber<&fib::ready> READY{this, 2};  // runs when two signals have come
};

int main(int argc, char** argv) {
  strata::runtime runtime(argc, argv);
  runtime.run([] {
    int value = 0;
    strata::completion done;
    strata::token<fib>(20, strata::to_global(&value), done.sptr());
    done.wait();
    std::printf("fib(20) = %d\n", value);
  });
}
