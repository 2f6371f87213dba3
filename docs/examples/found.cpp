#include <cstdint>
#include <cstdio>
#include <strata/remote_thread.hpp>
#include <strata/runtime.hpp>
#include <strata/shared_stop.hpp>
#include <strata/task_scope.hpp>
constexpr std::uint64_t wanted = 0x991820EACA112824, part = 1 << 18;

std::uint64_t hash(std::uint64_t x) {
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9;
  x = (x ^ x >> 27) * 0x94D049BB133111EB;
  return x ^ x >> 31;
}

void store(strata::global_ptr<std::uint64_t> where, std::uint64_t x) { *where.local() = x; }

void search(std::uint64_t begin, strata::global_ptr<std::uint64_t> result,
            strata::stop_handle stop) {
  const strata::stop_token found = stop.token();  // of the node that makes this call
  for (std::uint64_t x = begin; x < begin + part; ++x) {
    if (x % 1024 == 0 && found.stop_requested()) return;
    if (hash(x) != wanted) continue;
    strata::call<store>(strata::on_node{result.node()}, result, x);
    stop.request();  // on all nodes
    return;
  }
}

int main(int argc, char** argv) {
  strata::runtime runtime(argc, argv);
  runtime.run([] {
    std::uint64_t result = 0;
    strata::shared_stop stop;
    strata::task_scope scope(stop.token());  // begins no more parts once it is found
    for (std::uint64_t i = 0; i < 64; ++i)
      scope.spawn(strata::call<search>(i * part, strata::to_global(&result), stop.handle()));
    scope.sync();
    std::printf("%lu\n", result);
  });
}
