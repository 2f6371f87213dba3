#include <strata/thread.hpp>

#include <cstdio>

int main() {
  strata::thread t([] { std::puts("on a worker"); });
  t.join();  // main() itself is an OS thread: it blocks
}
