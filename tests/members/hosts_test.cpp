// SPDX-License-Identifier: Apache-2.0
// Nodes that come from hosts which not all members share a network with.
#include "chain_of_hosts.hpp"
#include "elastic_job.hpp"

namespace {

using launch_test::chain_of_hosts;
using launch_test::elastic_job;

TEST_F(chain_of_hosts, a_comer_is_reached_by_a_gateway_that_stays_for_it) {
  elastic_job job("2", "far", {"--host", address(1) + "," + address(2)}, {all_networks}, {},
                  from_hub());
  job.wait_for("listens");
  job.join({"--host", address(3)});
  job.wait_for("heard");
  const std::string why = job.leave_in_vain("1");
  EXPECT_NE(why.find("cannot leave: nodes that share no network reach each other by it"),
            std::string::npos)
      << why;
  job.leave("2");
  job.wait_for("gone");
  // Nobody is reached by it any more.
  job.leave("1");
  job.expect_ok();
}

}  // namespace
