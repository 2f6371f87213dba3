#include <cstdio>
#include <functional>
#include <strata/group.hpp>
#include <strata/resource.hpp>
#include <strata/runtime.hpp>
#include <strata/synchronizers.hpp>
int where() { return strata::node_id(); }

struct account {
  long balance = 0;
  long get() { return balance; }
  void set(long n) { balance = n; }
};

// On every node: to read and to write are two calls, so the lock is held meanwhile.
void deposit() {
  auto bank = strata::resource<account>::await("bank");
  auto lock = strata::lock_handle::await("lock");
  lock.lock();
  bank.call<&account::set>(bank.call<&account::get>() + 100);
  lock.unlock();
  strata::barrier_handle::await("paid in").arrive_and_wait();
}

int main(int argc, char** argv) {
  strata::runtime runtime(argc, argv);
  runtime.run([] {
    const auto nodes = strata::num_nodes();
    std::printf("node %d is the last one\n", strata::call<where>(strata::on_node{nodes - 1}));
    strata::named<account> bank("bank");
    strata::named<strata::counting_semaphore<>> lock("lock", 1);
    strata::named<strata::barrier<>> paid("paid in", nodes);
    strata::on_every_node([] { deposit(); });
    std::printf("paid in: %ld\n", bank->balance);
    strata::run_group(2, [](strata::group& all) {
      const unsigned sum = all.all_reduce(all.rank(), std::plus<>());
      if (all.rank() == 0) std::printf("sum of %u ranks: %u\n", all.size(), sum);
    });
  });
}
