// SPDX-License-Identifier: Apache-2.0
// align as a job of several nodes: everything it reports equals what one node reports, over every
// transport; mistakes are told once.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "apps/align/ready_tiles.hpp"
#include "apps/align/share.hpp"
#include "tests/align/reference.hpp"
#include "tests/apps/run_program.hpp"
#include "tests/common/in_turn.hpp"
#include "tests/common/sampled.hpp"

namespace align_test {
namespace {

namespace fs = std::filesystem;
using apps_test::outcome;
using words = std::vector<std::string>;

words operator+(words a, const words& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

class several_nodes : public testing::Test {
 protected:
  several_nodes() {
    std::string name = (fs::temp_directory_path() / "align_nodes_XXXXXX").string();
    if (!::mkdtemp(name.data())) throw std::runtime_error("no temporary folder");
    folder_ = name;
  }
  ~several_nodes() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  std::string put(const std::string& name, const std::string& letters) const {
    const std::string path = (folder_ / name).string();
    std::ofstream(path, std::ios::binary) << ">" << name << "\n" << letters << "\n";
    return path;
  }
  // Two sequences that share a long stretch, with differences; of half the length where all that
  // a kernel loads and stores is looked at.
  words related(std::size_t query, std::size_t ref, std::size_t common) const {
    for (std::size_t* const length : {&query, &ref, &common})
      *length /= strata::test::sampled(1U, 2U);
    const std::string q = seeded_letters(11, query);
    std::string r = seeded_letters(12, ref), copy = q.substr(query / 4, common);
    for (std::size_t at = 37; at < copy.size(); at += 101) copy[at] = copy[at] == 'A' ? 'C' : 'A';
    if (copy.size() > 900) copy.erase(700, 5);
    r.replace(ref / 3, copy.size(), copy);
    return {put("q.fa", q), put("r.fa", r)};
  }

  static outcome on_one(const words& arguments) {
    return apps_test::run(words{"align"} + arguments + words{"--json"});
  }
  static outcome on_nodes(const words& flags, const words& arguments) {
    return apps_test::run(words{"strata", "run"} + flags + words{APPS_BIN_DIR "/align"} +
                          arguments + words{"--json"});
  }
  // Compares with one node, where the styles agree (ground_truth_test.cpp). `flags` begin with -n.
  // Also returns what each node did; empty where one did everything.
  static nlohmann::json expect_the_same(const words& flags, const words& arguments) {
    const outcome one = on_one(arguments), many = on_nodes(flags, arguments);
    EXPECT_EQ(one.exit_code, 0) << one.err;
    EXPECT_EQ(many.exit_code, 0) << many.err;
    nlohmann::json per_node = nlohmann::json::array();
    if (one.exit_code != 0 || many.exit_code != 0) return per_node;
    auto a = nlohmann::json::parse(one.last_line()), b = nlohmann::json::parse(many.last_line());
    if (b["result"].contains("per_node")) {
      per_node = b["result"]["per_node"];
      double cells = 0;
      for (const auto& n : per_node) cells += n["cells"].get<double>();
      EXPECT_EQ(cells, b["result"]["cells"].get<double>());
      b["result"].erase("per_node");
    }
    for (auto* result : {&a["result"], &b["result"]}) {
      result->erase("sweep_seconds");
      result->erase("cells_per_second");
    }
    EXPECT_EQ(a["result"], b["result"]);
    EXPECT_EQ(std::to_string(b["nodes"].get<unsigned>()), flags.at(1));
    EXPECT_EQ(a["parameters"], b["parameters"]);
    return per_node;
  }
  static std::size_t with_a_part(const nlohmann::json& per_node) {
    return static_cast<std::size_t>(
        std::count_if(per_node.begin(), per_node.end(),
                      [](const auto& n) { return n["tiles"].template get<std::int64_t>() > 0; }));
  }

  fs::path folder_;
};

struct way {
  const char* nodes;
  const char* workers;
  const char* transport;
};

class every_way : public several_nodes, public testing::WithParamInterface<way> {
 protected:
  void SetUp() override {
    if (strata::test::left_to_the_other_sanitizer()) GTEST_SKIP() << "the other sanitizer's turn";
  }
  static words flags() {
    return {"-n",          GetParam().nodes,    "--workers", GetParam().workers,
            "--transport", GetParam().transport};
  }
};
INSTANTIATE_TEST_SUITE_P(ways, every_way,
                         testing::Values(way{"1", "2", "auto"}, way{"2", "1", "shm"},
                                         way{"2", "2", "shm"}, way{"2", "1", "tcp"},
                                         way{"2", "2", "tcp"}, way{"3", "1", "shm"},
                                         way{"3", "1", "tcp"}),
                         [](const auto& p) {
                           return std::string(p.param.transport) + "_" + p.param.nodes + "_by_" +
                                  p.param.workers;
                         });

TEST_P(every_way, linear_gaps_both_strands) {
  const auto nodes =
      expect_the_same(flags(), related(6000, 20000, 2500) + words{"--strand", "both"});
  EXPECT_EQ(with_a_part(nodes),
            std::string(GetParam().nodes) == "1" ? 0u : std::stoul(GetParam().nodes));
}

TEST_P(every_way, affine_gaps_one_strand) {
  expect_the_same(
      flags(), related(5000, 9000, 3000) + words{"--match", "5", "--mismatch", "-4", "--gap-open",
                                                 "10", "--gap-extend", "1", "--hits", "5"});
}

TEST_P(every_way, scores_beyond_a_byte_cross_the_nodes) {
  expect_the_same(flags(), related(9000, 9000, 7000) + words{"--strand", "both", "--hits", "3"});
}

TEST_P(every_way, the_same_cell_many_times) {
  const words sequences{put("q.fa", std::string(4000, 'A')),
                        put("r.fa", seeded_letters(3, 3000) + std::string(50, 'A') +
                                        seeded_letters(4, 3000) + std::string(50, 'A'))};
  expect_the_same(flags(), sequences + words{"--hits", "2"});
}

// A long hit, beside which is swept once more.
TEST_P(every_way, beside_hits) {
  const auto nodes =
      expect_the_same(flags(), related(16000, 40000, 9000) + words{"--kernels", "baseline"});
  EXPECT_EQ(nodes.empty(), std::string(GetParam().nodes) == "1");
  for (const auto& n : nodes) EXPECT_GT(n.value("tiles_beside_hits", 0), 0) << nodes;
}

TEST_P(every_way, narrow_kernels) {
  expect_the_same(
      flags(), related(3000, 5000, 1000) + words{"--kernels", "baseline", "--strand", "reverse"});
}

// More than one group for each node, because there are few blocks.
TEST_P(every_way, borders_go_round) {
  expect_the_same(flags(), related(20000, 3000, 1500) +
                               words{"--kernels", "baseline", "--strand", "both", "--hits", "3"});
}

TEST_P(every_way, almost_nothing_to_do) {
  for (const auto& [q, r] : {std::pair{"A", "A"}, {"A", "C"}, {"ACG", "G"}, {"N", "ACGT"}})
    expect_the_same(flags(), {put("q.fa", q), put("r.fa", r), "--strand", "both"});
}

TEST_P(every_way, end_to_end_is_work_of_node_0) {
  EXPECT_EQ(with_a_part(expect_the_same(flags(), related(1500, 1700, 900) + words{"--global"})),
            0u);
}

TEST_F(several_nodes, other_styles_are_work_of_node_0) {
  for (const char* style : {"serial", "fork-join"})
    EXPECT_EQ(with_a_part(expect_the_same({"-n", "2", "--workers", "1"},
                                          related(3000, 4000, 500) + words{"--style", style})),
              0u);
}

TEST_F(several_nodes, mistakes_are_told_once) {
  const auto expect_one_line = [](const outcome& o) {
    EXPECT_EQ(o.exit_code, 2) << o.err;
    const auto at = o.err.find("align: ");
    EXPECT_NE(at, std::string::npos) << o.err;
    EXPECT_EQ(o.err.find("align: ", at + 1), std::string::npos) << o.err;
    EXPECT_EQ(o.out, "");
  };
  const words flags{"-n", "2", "--workers", "1"};
  const std::string q = put("q.fa", "ACGT");
  expect_one_line(on_nodes(flags, {q, (folder_ / "absent.fa").string()}));
  expect_one_line(on_nodes(flags, {q, put("empty.fa", "")}));
  expect_one_line(on_nodes(flags, {q, put("bad.fa", "AC!GT")}));
  expect_one_line(on_nodes(flags, {q, q, "--style", "none"}));
  expect_one_line(on_nodes(flags, {q}));
}

TEST_F(several_nodes, a_pipe_is_not_read_by_several) {
  const std::string pipe = (folder_ / "pipe").string();
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const int both_ends = ::open(pipe.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(both_ends, 0);
  const std::string record = ">q\nACGT\n";
  ASSERT_EQ(::write(both_ends, record.data(), record.size()), static_cast<ssize_t>(record.size()));
  // Of more, another one may end so much earlier than who says why that nothing is said.
  const outcome o = on_nodes({"-n", "2", "--workers", "1"}, {pipe, put("r.fa", "ACGT")});
  ::close(both_ends);
  EXPECT_EQ(o.exit_code, 2) << o.err;
  EXPECT_NE(o.err.find("align: " + pipe + ": is a pipe"), std::string::npos) << o.err;
  EXPECT_EQ(o.out, "");
}

// As standard input is on the nodes that do not get it.
TEST_F(several_nodes, nor_is_a_device) {
  const int other_end = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (other_end < 0) GTEST_SKIP() << "no terminals here";
  ASSERT_EQ(::unlockpt(other_end), 0);
  const std::string terminal = ::ptsname(other_end);
  const outcome o = on_nodes({"-n", "2", "--workers", "1"}, {terminal, put("r.fa", "ACGT")});
  ::close(other_end);
  EXPECT_EQ(o.exit_code, 2) << o.err;
  EXPECT_NE(o.err.find("align: " + terminal + ": is a pipe or a device"), std::string::npos)
      << o.err;
  EXPECT_EQ(o.out, "");
}

TEST_F(several_nodes, one_picture_and_one_table) {
  const words sequences = related(6000, 20000, 2500);
  const std::string picture = (folder_ / "out.svg").string();
  const outcome o = apps_test::run(words{"strata", "run", "-n", "2", "--workers", "1",
                                         APPS_BIN_DIR "/align", "--explain", "--svg", picture} +
                                   sequences);
  EXPECT_EQ(o.exit_code, 0) << o.err;
  EXPECT_NE(o.out.find("2 nodes"), std::string::npos) << o.out;
  EXPECT_TRUE(fs::exists(picture));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 3);
}

// What a node thinks of its own tiles and of those around them.
void expect_consistent(const std::vector<int>& owners, int strips, int blocks, int nodes, int n,
                       bool from_behind) {
  const align::share s(strips, blocks, nodes, n, from_behind);
  const auto owner = [&](int r, int c) { return owners[static_cast<std::size_t>(r * blocks + c)]; };
  const auto is_near = [&](int o) { return std::abs(o - n) <= 1; };
  for (int r = 0; r < strips; ++r) {
    const align::share::range own = s.blocks_of(r);
    for (int c = 0; c < blocks; ++c) {
      EXPECT_EQ(s.owns(r, c), owner(r, c) == n);
      EXPECT_EQ(s.node(r, c), owner(r, c));
      EXPECT_EQ(s.owns(r, c), own.begin <= c && c < own.end);
      if (!s.owns(r, c)) continue;
      // What is needed comes from here or from a neighbour.
      EXPECT_TRUE(r == 0 || is_near(owner(r - 1, c))) << r << " " << c;
      EXPECT_TRUE(c == 0 || is_near(owner(r, c - 1))) << r << " " << c;
      if (nodes == 1) continue;
      // The nearest one above that is ours, and beyond another node's.
      int last = r;
      while (last >= 0 && s.owns(last, c)) --last;
      while (last >= 0 && !s.owns(last, c)) --last;
      EXPECT_EQ(s.last_before(r, c), last) << r << " " << c;
    }
  }
}

TEST(share, deals_every_tile_once) {
  for (const bool from_behind : {false, true}) {
    for (const int nodes : {1, 2, 3, 8}) {
      for (const int strips : {1, 2, 7, 95, strata::test::scaled(300, 130)}) {
        for (const int blocks : {1, 10, strata::test::scaled(250, 40)}) {
          std::vector<int> owners(static_cast<std::size_t>(strips * blocks), -1);
          std::vector<int> counts(static_cast<std::size_t>(nodes));
          for (int n = 0; n < nodes; ++n) {
            const align::share s(strips, blocks, nodes, n, from_behind);
            s.for_each_group([&](std::int64_t first, std::int64_t end) {
              EXPECT_GE(end - first, blocks) << "none is smaller than a strip";
              for (std::int64_t t = first; t < end; ++t) {
                EXPECT_EQ(owners[static_cast<std::size_t>(t)], -1);
                owners[static_cast<std::size_t>(t)] = n;
                ++counts[static_cast<std::size_t>(n)];
              }
            });
          }
          for (int n = 0; n < nodes; ++n)
            expect_consistent(owners, strips, blocks, nodes, n, from_behind);
          EXPECT_EQ(std::count(owners.begin(), owners.end(), -1), 0);
          if (strips >= nodes) {
            const auto [least, most] = std::minmax_element(counts.begin(), counts.end());
            // Where a pass ends and the next begins, two portions are one group.
            const int groups = align::share(strips, blocks, nodes, 0, false).groups();
            const int passes = nodes == 1 ? 1 : (groups - 1) / (nodes - 1);
            EXPECT_LE(*most - *least, passes) << strips << " " << blocks << " " << nodes;
          }
        }
      }
    }
  }
}

// Otherwise one node would wait for whatever takes the other one longer.
TEST(share, begins_and_ends_with_the_same_node) {
  for (const bool from_behind : {false, true}) {
    const align::share s(95, 490, 2, 0, from_behind);
    EXPECT_EQ(s.groups(), 3);
    EXPECT_EQ(s.node(0, 0), from_behind ? 1 : 0);
    EXPECT_EQ(s.node(47, 245), from_behind ? 0 : 1);
    EXPECT_EQ(s.node(94, 489), from_behind ? 1 : 0);
  }
  const align::share of_three(300, 490, 3, 1, false);
  EXPECT_EQ(of_three.groups(), 5) << "0, 1, twice 2, 1, 0";
}

TEST(ready_tiles, of_the_first_group_and_the_first_block_go_first) {
  align::ready_tiles ready;
  const std::vector<align::ready_tile> in_order{{1, 0, 7, 2},  {0, 1, 20, 1}, {0, 1, 21, 1},
                                                {0, 1, 20, 2}, {1, 1, 20, 2}, {0, 2, 40, 0}};
  for (const std::size_t i : {3, 0, 5, 4, 1, 2}) ready.push(in_order[i]);
  for (const align::ready_tile& expected : in_order) {
    const align::ready_tile t = ready.pop();
    EXPECT_EQ(std::tie(t.part, t.group, t.strip, t.block),
              std::tie(expected.part, expected.group, expected.strip, expected.block));
  }
}

}  // namespace
}  // namespace align_test
