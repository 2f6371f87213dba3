// SPDX-License-Identifier: Apache-2.0
// Programs started by Slurm on two nodes, a real one that slurm/two-nodes brings up on this
// machine.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "command.hpp"

namespace {

using launch_test::command;
using launch_test::contains;
using launch_test::count_lines;
using launch_test::node_program;
using launch_test::result;

// Runs the lines in a shell on the cluster; $program is ours.
result on_cluster(const std::string& lines) {
  constexpr const char* leaks =
      "LSAN_OPTIONS=print_suppressions=0:suppressions=" STRATA_LEAKS_OF_OTHERS;
  command c({STRATA_TWO_NODES, "sh", "-c", "program=" + node_program() + "\n" + lines},
            {.variables = {leaks}, .input = {}, .around = {}, .other = true});
  const int status = c.wait();
  return {status, c.out(), c.err()};
}

constexpr int cannot_be_done_here = 77;

#define STRATA_SKIP_WITHOUT_SLURM(r) \
  if ((r).status == cannot_be_done_here) GTEST_SKIP() << (r).err

TEST(slurm, ranks_are_nodes) {
  const result r = on_cluster(
      "srun -n 4 -N 2 --mpi=pmix $program count || exit\n"
      // Not sbatch -W, which looks every few seconds whether the job is over.
      "sbatch -n 3 -N 2 -o $TWO_NODES/out --wrap \"srun --mpi=pmix $program count; echo status "
      "\\$?\" >&2 || exit\n"
      // Until it has said its last, or Slurm knows of none: whoever is not answered asks again.
      "until grep -qs ^status $TWO_NODES/out || { left=$(squeue -h) && [ -z \"$left\" ]; }; do "
      "sleep 0.05; done\n"
      "cat $TWO_NODES/out\n"
      "srun -n 2 -N 1 --mpi=pmix $program --strata-transport=tcp exit-3");
  STRATA_SKIP_WITHOUT_SLURM(r);
  EXPECT_EQ(r.status, 3) << r.err;
  EXPECT_EQ(count_lines(r.out), 4U) << r.out;
  // Two on each host: shared memory within, sockets between.
  EXPECT_EQ(r.out.rfind("4 nodes, node 0: node 0 of 4, 1 by shm, 2 by tcp", 0), 0U) << r.out;
  EXPECT_TRUE(contains(r.out, "\n3 nodes, node 0: ")) << r.out;
  EXPECT_TRUE(contains(r.out, "\nstatus 0\n")) << r.out;
  EXPECT_TRUE(contains(r.out, "\n2 nodes, node 0: node 0 of 2, 1 by tcp")) << r.out;
}

// A second one joins the nodes, and each has a bridge of its own.
TEST(slurm, nodes_find_their_networks) {
  const result r = on_cluster(
      "ip -n node1 link add cable type veth peer name cable netns node2 || exit 77\n"
      "for n in 1 2; do\n"
      "ip -n node$n addr add 192.168.9.$n/24 dev cable && ip -n node$n link set cable up && "
      "ip -n node$n link add docker0 type veth peer name other && "
      "ip -n node$n addr add 172.17.0.1/16 dev docker0 && ip -n node$n link set docker0 up && "
      "ip -n node$n link set other up || exit 77\n"
      "done\n"
      // What does not run is not looked at.
      "for n in 1 2; do\n"
      "ip netns exec node$n sh -c 'until grep -qx up /sys/class/net/cable/operstate; "
      "do sleep 0.02; done' || exit 77\n"
      "done\n"
      "srun -n 2 -N 2 --mpi=pmix " STRATA_COMMAND
      " report-routes --strata-networks=auto || exit\n"
      "srun -n 4 -N 2 --mpi=pmix $program --strata-networks=auto count");
  STRATA_SKIP_WITHOUT_SLURM(r);
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_TRUE(contains(r.out, "   0     1     1     1  tcp ")) << r.out;
  EXPECT_TRUE(contains(r.out, "/24\n")) << "named, so there were several\n" << r.out;
  EXPECT_FALSE(contains(r.out, "172.17.")) << r.out;
  EXPECT_TRUE(contains(r.out, "4 nodes, node 0: node 0 of 4, 1 by shm, 2 by tcp")) << r.out;
}

TEST(slurm, info_and_a_hint) {
  const result r = on_cluster("srun -n 2 -N 2 --mpi=pmix " STRATA_COMMAND
                              " info || exit\n"
                              "srun -n 2 -N 2 $program count");
  STRATA_SKIP_WITHOUT_SLURM(r);
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_TRUE(contains(r.out, "launch: PMIx, job slurm.pmix.1.0, node 1 of 2, 1 of them on this"))
      << r.out;
  // Without PMIx nobody finds anybody, which is said once.
  EXPECT_TRUE(contains(r.out, "1 nodes, node ")) << r.out;
  const std::string hint =
      "strata: srun has started 2 processes that cannot find each other, so each runs by itself; "
      "use srun --mpi=pmix\n";
  EXPECT_TRUE(contains(r.err, hint)) << r.err;
  EXPECT_EQ(r.err.find(hint), r.err.rfind(hint)) << r.err;
}

TEST(slurm, who_is_lost_or_does_not_come_is_named) {
  // First on the same host, then on the other; then one that nobody else ends.
  const result r = on_cluster(
      "srun -n 2 -N 1 --mpi=pmix $program kill; echo status $?\n"
      "srun -n 2 -N 2 --mpi=pmix $program kill; echo status $?\n"
      // Longer and longer, until node 0 speaks: it may be late for node 2, which ends the job.
      "limit=1\n"
      "until srun -n 3 -N 2 -K --mpi=pmix $program --strata-start-limit-s=$limit late "
      "2>$TWO_NODES/said; echo status $?; cat $TWO_NODES/said >&2; "
      "grep -q 'program: node' $TWO_NODES/said || [ $limit = 16 ]; do limit=$((limit * 2)); done\n"
      "echo limit $limit");
  STRATA_SKIP_WITHOUT_SLURM(r);
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_FALSE(contains(r.out, "status 0")) << r.out;
  // Slurm's PMIx ends the others soon, perhaps before they have a say.
  EXPECT_TRUE(contains(r.err, "srun: error: node1: task 1: Killed\n")) << r.err;
  EXPECT_TRUE(contains(r.err, "srun: error: node2: task 1: Killed\n")) << r.err;
  // On a busy machine node 2 may be late as well.
  const std::size_t limit = r.out.rfind(' ') + 1;
  const std::string what =
      " did not join within " + r.out.substr(limit, r.out.size() - limit - 1) + " s";
  EXPECT_TRUE(contains(r.err, "program: node 1" + what) ||
              contains(r.err, "program: nodes 1-2" + what))
      << r.err;
}

#if defined(STRATA_MPI_PROGRAM)
TEST(slurm, nodes_live_within_an_mpi_program) {
  const result r =
      on_cluster("LSAN_OPTIONS=detect_leaks=0 srun -n 4 -N 2 --mpi=pmix " STRATA_MPI_PROGRAM);
  STRATA_SKIP_WITHOUT_SLURM(r);
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_EQ(r.out, "all 92, threads 1\n");
}
#endif

}  // namespace
