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

}  // namespace

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SINGLE, &provided);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  int total = 0;
  try {
    for (int round = 0; round < 2; ++round) {
      int sum = 0;
      {
        runtime rt(options::parse(argc, argv));
        if (!rt.has_served()) {
          sum = rt.run(&sum_of_nodes);
        } else {
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
      }
      // MPI as before: what rank 0 has found, all get to know.
      MPI_Bcast(&sum, 1, MPI_INT, 0, MPI_COMM_WORLD);
      total += sum + rank;
    }
  } catch (const std::exception& e) {
    std::printf("not ok: %s\n", e.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  int all = 0;
  MPI_Reduce(&total, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0)
    std::printf("all %d, threads %s\n", all, provided == MPI_THREAD_SINGLE ? "1" : "?");
  MPI_Finalize();
  return 0;
}
