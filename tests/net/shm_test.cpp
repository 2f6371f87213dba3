// SPDX-License-Identifier: Apache-2.0
// The promises of every transport, kept by shared memory; here between nodes of one process, which
// is how nodes within a process are connected.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "net/shm/shm_transport.hpp"
#include "os/descriptor.hpp"
#include "stand_in_suite.hpp"
#include "strata/error.hpp"
#include "transport_suite.hpp"

namespace strata::net::test {
namespace {

std::vector<std::unique_ptr<transport>> make_shm(node_id nodes, bool) {
  const int memory = ::memfd_create("shm_test", MFD_CLOEXEC);
  shm::settings s;
  s.memory = memory;
  s.ring_bytes = std::size_t{256} << 10;  // the tests go round it, and fill it
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
INSTANTIATE_TEST_SUITE_P(shm, stand_in_suite, testing::Values(transport_maker{"shm", make_shm}),
                         name_of);

// A reader that has left its writer alone for a moment, because messages followed each other, still
// takes in all that has come: after unattended() nobody else is woken for it.
TEST(shm, takes_in_all_that_has_come_in_a_train) {
  const auto nodes = make_shm(2, true);
  struct counter final : receiver {
    unsigned messages = 0;
    void on_message(const header&, std::span<const std::byte>) override { ++messages; }
    void on_lost(node_id, const std::string& why) override { FAIL() << why; }
  } got;
  unsigned sent = 0;
  const auto send = [&] {
    header h{};
    h.source = 0;
    h.destination = 1;
    ASSERT_EQ(nodes[0]->try_send(1, h, {}, {}), send_outcome::sent);
    ++sent;
  };
  nodes[1]->attended();
  for (unsigned i = 0; i < 1000; ++i) {
    send();
    send();
    EXPECT_EQ(nodes[1]->poll(got, 1), 1U);  // it has seen the second
    send();
    EXPECT_EQ(nodes[1]->poll(got, 256), 2U);
  }
  EXPECT_TRUE(nodes[1]->unattended());
  EXPECT_EQ(got.messages, sent);
}

// As from a neighbour that writes where it should not: what it says of itself is not true.
TEST(shm, loses_a_node_whose_memory_holds_what_no_node_writes) {
  const auto nodes = make_shm(2, true);
  struct witness final : receiver {
    std::vector<std::string> lost;
    void on_message(const header&, std::span<const std::byte>) override { ADD_FAILURE(); }
    void on_lost(node_id node, const std::string& why) override {
      EXPECT_EQ(node, 0);
      lost.push_back(why);
    }
  } got;
  ASSERT_EQ(nodes[0]->try_send(1, header_of(1, 1), {}, {}), send_outcome::sent);
  EXPECT_EQ(nodes[1]->poll(got, 1), 0U);
  EXPECT_EQ(nodes[1]->poll(got, 1), 0U);
  EXPECT_EQ(got.lost, std::vector<std::string>{"its memory holds a malformed message"});
}

// The others go on, and more may come and leave than there would be memory for at once.
TEST(shm, of_a_node_that_has_left_takes_hardly_any_memory) {
  for (const bool leaves : {false, true}) {
    const os::descriptor memory(::memfd_create("shm_test", MFD_CLOEXEC));
    shm::settings s;
    s.memory = memory.get();
    s.ring_bytes = std::size_t{1} << 20;
    s.nodes = {0, 1};
    const shm::shm_transport stays(s);
    s.self = 1;
    auto other = std::make_unique<shm::shm_transport>(s);
    const std::vector<std::byte> large(60'000);
    for (int i = 0; i < 10; ++i)
      ASSERT_EQ(other->try_send(0, header_of(1, 0), large, {}), send_outcome::sent);
    if (leaves) other->has_left();
    other.reset();
    struct stat now {};
    ASSERT_EQ(::fstat(memory.get(), &now), 0);
    constexpr std::int64_t block = 512;
    if (leaves)
      EXPECT_LT(now.st_blocks * block, 100'000);
    else
      EXPECT_GT(now.st_blocks * block, 600'000);  // the other one has yet to read it
  }
}

// What making node 0 of two fails with.
std::string refusal_of(int memory, std::size_t ring_bytes) {
  shm::settings s;
  s.memory = memory;
  s.ring_bytes = ring_bytes;
  s.nodes = {0, 1};
  try {
    const shm::shm_transport made(s);
    return "none";
  } catch (const error& e) {
    return e.what();
  }
}

TEST(shm, that_cannot_be_had_is_an_error_that_says_what_to_do) {
  constexpr std::size_t small = std::size_t{256} << 10;
  // A file that nobody may make larger, and memory for which there are not enough addresses.
  const int sealed = ::memfd_create("shm_test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_EQ(::fcntl(sealed, F_ADD_SEALS, F_SEAL_GROW), 0);
  EXPECT_EQ(refusal_of(sealed, small),
            "cannot size the memory shared by the nodes of this host: Operation not permitted; use "
            "--transport tcp, or free memory");
  ::close(sealed);
  const int open = ::memfd_create("shm_test", MFD_CLOEXEC);
  EXPECT_EQ(refusal_of(open, small), "none");
  EXPECT_EQ(refusal_of(open, std::size_t{1} << 56),
            "cannot map the memory shared by the nodes of this host: Cannot allocate memory; use "
            "--transport tcp, or free memory");
  ::close(open);
}

}  // namespace
}  // namespace strata::net::test
