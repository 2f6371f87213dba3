// SPDX-License-Identifier: Apache-2.0
// What messages cost in MPI, between two ranks of one thread each. Built by bench/messages/mpi.py
// with the compiler wrapper of each MPI that is installed.
#include <mpi.h>

#include <cstdio>

#include "bench/messages/pair.hpp"

namespace {

void send(std::vector<std::byte>& m, int to) {
  MPI_Send(m.data(), static_cast<int>(m.size()), MPI_BYTE, to, 0, MPI_COMM_WORLD);
}
void receive(std::vector<std::byte>& m, int from) {
  MPI_Recv(m.data(), static_cast<int>(m.size()), MPI_BYTE, from, 0, MPI_COMM_WORLD,
           MPI_STATUS_IGNORE);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const bench::exchange e(bench::arguments(argc, argv).rest);
  if (e.waits != bench::waiting::looks) bench::arguments::refuse("ranks of MPI spin");
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  bench::pin(static_cast<unsigned>(rank));
  std::vector<std::byte> message(e.bytes);
  const int other = 1 - rank;
  double seconds = 0;
  if (e.streams()) {
    MPI_Barrier(MPI_COMM_WORLD);
    seconds = bench::seconds_of([&] {
      for (std::size_t i = 0; i < e.count; ++i)
        rank == 0 ? receive(message, other) : send(message, other);
    });
    MPI_Barrier(MPI_COMM_WORLD);
  } else if (rank == 0) {
    const auto there_and_back = [&] { send(message, other), receive(message, other); };
    for (std::size_t i = 0; i < e.count / 10; ++i) there_and_back();
    seconds = bench::seconds_for(e.count, there_and_back) / 2;
  } else {
    for (std::size_t i = 0; i < e.count + e.count / 10; ++i)
      receive(message, other), send(message, other);
  }
  MPI_Finalize();
  return rank == 0 ? bench::print_exchange("mpi", e, seconds) : 0;
}
