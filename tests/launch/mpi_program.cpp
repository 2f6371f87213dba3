// SPDX-License-Identifier: Apache-2.0
// An MPI program whose ranks are our nodes now and then. MPI knows of one thread.
#include <mpi.h>

#include <cstdio>
#include <exception>
#include <memory>
#include <vector>

#include "strata/fiber.hpp"
#include "strata/runtime.hpp"

namespace {

using namespace strata;

struct adder : threaded {
  global_ptr<int> to;
  slot_ptr done;
  void start() {
    put_sync<int>(node_id() + 1, to + node_id(), done);
    terminate();
  }
};

// 1 + 2 + ... + nodes, a part from each.
int sum_of_nodes() {
  const unsigned n = num_nodes();
  std::vector<int> parts(n);
  completion all(n);
  for (unsigned i = 0; i < n; ++i)
    invoke<adder>(static_cast<node_id_t>(i), to_global(parts.data()), all.sptr());
  all.wait();
  int sum = 0;
  for (const int part : parts) sum += part;
  return sum;
}

void expect_nothing_more_of(runtime& rt) {
  try {
    rt.run([] {});
    std::printf("a node that has served has run something\n");
  } catch (const misuse_error&) {
  }
  const auto held = std::make_shared<int>(0);
  try {
    rt.submit([held] {});
    std::printf("a node that has served has taken something\n");
  } catch (const misuse_error&) {
  }
  if (held.use_count() != 1) std::printf("what was refused is still there\n");
}

}  // namespace

int main(int argc, char** argv) {
  int rank = 0, total = 0;
  try {
    int sum = 0;
    // As docs/cluster.md has it.
    MPI_Init(&argc, &argv);
    {
      strata::runtime runtime(argc, argv);
      if (!runtime.has_served()) sum = runtime.run(&sum_of_nodes);  // on node 0, which is rank 0
    }
    MPI_Bcast(&sum, 1, MPI_INT, 0, MPI_COMM_WORLD);  // MPI as before: all ranks have it
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    total = sum + rank;
    {
      runtime again;
      sum = again.has_served() ? 0 : again.run(&sum_of_nodes);
      if (again.has_served()) expect_nothing_more_of(again);
    }
    MPI_Bcast(&sum, 1, MPI_INT, 0, MPI_COMM_WORLD);
    total += sum + rank;
  } catch (const std::exception& e) {
    std::printf("not ok: %s\n", e.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  int all = 0;
  MPI_Reduce(&total, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  int provided = 0;
  MPI_Query_thread(&provided);
  if (rank == 0)
    std::printf("all %d, threads %s\n", all, provided == MPI_THREAD_SINGLE ? "1" : "?");
  MPI_Finalize();
  return 0;
}
