// SPDX-License-Identifier: Apache-2.0
// Names that are withdrawn, and domains that are joined, where memory runs out: no node keeps
// anything of them for ever.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "../common/refused_new.hpp"
#include "messages/messenger.hpp"
#include "program_job.hpp"
#include "strata/directory.hpp"
#include "strata/domain.hpp"

namespace strata::test {
namespace {

using net::node_id;

// At home on node 0, and remembered by all: `withdraws` is called there, and what others have found
// of it then is returned, by node.
std::vector<std::optional<std::uint32_t>> found_after(program_job& p, const std::string& name,
                                                      const std::function<void()>& withdraws) {
  const auto nodes = static_cast<node_id>(p.job->size());
  EXPECT_EQ(p.job->node(0).messenger.home_of(std::hash<std::string>()(name)), 0U);
  std::vector<std::optional<std::uint32_t>> found(nodes);
  node_id know = 0;
  bool is_withdrawn = false;
  p.begin(0, [&] {
    publish(name, std::uint32_t{7});
    while (know != nodes - 1) p.pause(100'000);
    withdraws();
    is_withdrawn = true;
  });
  for (node_id n = 1; n < nodes; ++n) {
    p.begin(n, [&, n] {
      EXPECT_EQ(await_name<std::uint32_t>(name), 7U);
      ++know;
      while (!is_withdrawn) p.pause(100'000);
      found[n] = find_name<std::uint32_t>(name);
    });
  }
  p.run();
  return found;
}
// Of more bytes than a string has room for in itself.
std::string long_name_at_home(program_job& p) {
  std::string name = "a name that is at home on the first node";
  while (p.job->node(0).messenger.home_of(std::hash<std::string>()(name)) != 0) name += '+';
  return name;
}

TEST(simulated_without_memory, names_are_forgotten_wherever_that_can_be_said) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    program_job p(seed, {.nodes = 4});
    constexpr node_id untold = 1;
    const auto found = found_after(p, long_name_at_home(p), [&] {
      p.job->node(0).says = [](node_id to, cluster::kind k) {
        if (to == untold && k == cluster::kind::invoke) throw std::bad_alloc();
      };
      EXPECT_THROW((void)withdraw(long_name_at_home(p)), std::bad_alloc);
      p.job->node(0).says = {};
    });
    for (node_id n = untold + 1; n < found.size(); ++n) EXPECT_FALSE(found[n]) << "by node " << n;
  }
}

TEST(simulated_without_memory, names_are_forgotten_in_the_end) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    program_job p(seed, {.nodes = 4});
    const std::string name = long_name_at_home(p);
    std::optional<refused_new> first_try;
    const auto found = found_after(p, name, [&] {
      p.job->node(1).hears = [&](node_id, cluster::kind k, std::span<const std::byte>) {
        if (k == cluster::kind::invoke && !first_try)
          first_try.emplace(name.size() + 1, name.size() + 1, 1);
        return false;
      };
      EXPECT_TRUE(withdraw(name));
      EXPECT_EQ(refused_new::refused(), 1U);
    });
    for (node_id n = 1; n < found.size(); ++n) EXPECT_FALSE(found[n]) << "by node " << n;
  }
}

// The first of its node, at whichever of its pieces memory ends: a domain keeps nothing of it.
TEST(simulated_without_memory, domains_keep_nothing_of_who_could_not_join) {
  program_job p(1, {.nodes = 2});
  unsigned refused = 0;
  p.begin(0, [&] {
    constexpr std::size_t bytes_max = 256;
    endpoint here;
    const endpoint_id there = endpoint_id::from_bits(here.id().bits() + (std::uint64_t{1} << 48));
    EXPECT_EQ(there.node(), 1);
    domain d;
    // From now on it has room for two.
    EXPECT_EQ(d.join(there), 0U);
    EXPECT_EQ(d.join(here.id()), 1U);
    EXPECT_TRUE(d.leave(there));
    const long before = refused_new::in_use();
    for (std::size_t bytes = 1; bytes <= bytes_max; ++bytes) {
      const refused_new none(bytes, bytes);
      try {
        EXPECT_EQ(d.join(there), 0U);
        EXPECT_TRUE(d.leave(there));
      } catch (const std::bad_alloc&) {
        ++refused;
        EXPECT_EQ(d.size(), 1U);
      }
      EXPECT_EQ(refused_new::in_use(), before) << "at a piece of " << bytes << " bytes";
    }
  });
  p.run();
  EXPECT_GE(refused, 2U);
}

}  // namespace
}  // namespace strata::test
