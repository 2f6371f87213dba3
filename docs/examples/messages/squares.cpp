#include <strata/message.hpp>
#include <strata/remote_thread.hpp>
#include <strata/runtime.hpp>

#include <cstdio>

void worker(strata::endpoint_id boss) {
  strata::endpoint& mine = strata::this_thread::endpoint();
  mine.send_value(boss, 1, mine.id());                       // here I am
  for (;;) {
    const int n = mine.receive_value<int>(boss);
    if (n < 0) return;
    mine.send_value(boss, 2, n * n);
  }
}

int main(int argc, char** argv) {
  strata::runtime runtime(argc, argv);
  runtime.run([] {
    strata::endpoint& mine = strata::this_thread::endpoint();
    const strata::on_node last{static_cast<strata::node_id_t>(strata::num_nodes() - 1)};
    strata::remote_thread other(last, strata::call<worker>(mine.id()));
    const auto to = mine.receive_value<strata::endpoint_id>(strata::any_endpoint, 1);
    for (const int n : {3, 4, -1}) mine.send_value(to, 0, n);
    const int first = mine.receive_value<int>(to);             // no argument beside the second: these have no order
    std::printf("%d %d\n", first, mine.receive_value<int>(to));
    other.join();
  });
}
