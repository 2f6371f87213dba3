// SPDX-License-Identifier: Apache-2.0
#include "program_published.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "../common/require.hpp"
#include "program_support.hpp"
#include "strata/directory.hpp"
#include "strata/domain.hpp"
#include "strata/grid.hpp"
#include "strata/message.hpp"
#include "strata/remote_thread.hpp"
#include "strata/resource.hpp"
#include "strata/semaphore.hpp"
#include "strata/synchronizers.hpp"
#include "strata/thread.hpp"

namespace {

using namespace strata;
using test::counter;
using test::require;

// On every node.
void use_names() {
  require(await_name<int>("answer") == 42, "a published value");
  require(find_name<int>("answer") == 42, "the same again");
  try {
    (void)find_name<long>("answer");
    require(false, "another type");
  } catch (const misuse_error&) {
  }
  require(!find_name<int>("question").has_value(), "a name that nobody published");
  const auto hits = resource<counter>::await("hits");
  hits.call<&counter::add>(long{1});

  lock_handle lock = lock_handle::await("lock");
  const auto unguarded = await_name<global_ptr<long>>("unguarded");
  for (int i = 0; i < 20; ++i) {
    const std::lock_guard guard(lock);
    const resource<long> value(unguarded);
    const long before = value.call<[](long& v) { return v; }>();
    value.call<[](long& v, long next) { v = next; }>(before + 1);
  }
  domain_handle workers = domain_handle::await("workers");
  endpoint& mine = this_thread::endpoint();
  const std::uint32_t rank = workers.join(mine.id());
  require(workers.join(mine.id()) == rank, "joining twice");
  workers.await_size(num_nodes());
  const std::vector<endpoint_id> all = workers.members();
  require(all.size() == num_nodes() && all[rank] == mine.id(), "the members");
  // Round the ring.
  const auto ring = await_name<grid>("ring");
  mine.send_value(all[ring.rank(std::array{(rank + 1) % num_nodes()})], 8, rank);
  require(
      mine.receive_value<std::uint32_t>(any_endpoint, 8) == (rank + num_nodes() - 1) % num_nodes(),
      "the neighbour");
  barrier_handle end = barrier_handle::await("end");
  // Nobody arrives by mistake, on whichever node.
  try {
    (void)end.arrive(num_nodes() + 1);
    require(false, "more arrive at a barrier than are missing");
  } catch (const misuse_error&) {
  }
  const barrier_handle::arrival_token almost = end.arrive();
  while (!end.wait_for(almost, std::chrono::microseconds(200))) {
  }
  end.arrive_and_wait();
  require(workers.leave(mine.id()), "leaving");
}

// A name of all: whoever has just published it finds no value of an owner before, though this node
// has remembered that when the name was taken.
void own_in_turn() {
  for (int i = 0; i < 200; ++i) {
    const int mine = node_id() * 1000 + i;
    try {
      publish("in turn", mine);
    } catch (const name_in_use_error&) {
      (void)find_name<int>("in turn");
      continue;
    }
    require(find_name<int>("in turn") == mine, "its own value");
    require(withdraw("in turn"), "its own name");
  }
}

}  // namespace

void names(runtime& rt) {
  rt.run([] {
    on_every_node([] { own_in_turn(); });
    for (int round = 0; round < 3; ++round) {
      long unguarded = 0;
      {
        const named<counter> hits("hits", 5);
        named<counting_semaphore<>> lock("lock", 1);
        named<domain> workers("workers");
        named<barrier<>> end("end", static_cast<std::ptrdiff_t>(num_nodes()));
        publish("unguarded", to_global(&unguarded));
        publish("ring", grid{.extent = {num_nodes()}, .wraps = {true}});
        thread late([] {
          this_thread::yield();
          publish("answer", 42);
        });
        on_every_node([] { use_names(); });
        late.join();
        require(unguarded == 20 * static_cast<long>(num_nodes()), "a lock between nodes");
        require(resource<counter>::find("hits").call<&counter::add>(long{0}) ==
                    5 + static_cast<long>(num_nodes()),
                "an object with a name");
        require(workers->size() == 0, "all have left");
        try {
          publish("answer", 43);
          require(false, "a name that is taken");
        } catch (const name_in_use_error&) {
        }
        require(withdraw("answer") && !withdraw("answer"), "a name is withdrawn once");
        require(withdraw("unguarded") && withdraw("ring"), "the others");
      }
      // Nobody remembers what is gone.
      on_every_node([] {
        for (const char* gone : {"answer", "hits", "lock", "ring"})
          require(!find_name<int>(gone).has_value(), "a name that is withdrawn");
      });
    }
  });
}
