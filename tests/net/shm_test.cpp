// SPDX-License-Identifier: Apache-2.0
// The promises of every transport, kept by shared memory; here between nodes of one process, which
// is how nodes within a process are connected.
#include <sys/mman.h>
#include <unistd.h>

#include <numeric>

#include "net/shm/shm_transport.hpp"
#include "transport_suite.hpp"

namespace strata::net::test {
namespace {

std::vector<std::unique_ptr<transport>> make_shm(node_id nodes, bool) {
  const int memory = ::memfd_create("shm_test", MFD_CLOEXEC);
  shm::settings s;
  s.memory = memory;
  s.nodes.resize(nodes);
  std::iota(s.nodes.begin(), s.nodes.end(), node_id{0});
  std::vector<std::unique_ptr<transport>> all;
  for (s.self = 0; s.self < nodes; ++s.self) all.push_back(std::make_unique<shm::shm_transport>(s));
  ::close(memory);
  return all;
}

// Who has died the launcher knows, and the heartbeat.
INSTANTIATE_TEST_SUITE_P(shm, transport_suite,
                         testing::Values(transport_maker{"shm", make_shm, false}), name_of);

}  // namespace
}  // namespace strata::net::test
