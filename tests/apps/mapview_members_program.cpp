// SPDX-License-Identifier: Apache-2.0
// Views of a map in a job whose nodes come and go, of a cluster loader alone: its last arguments
// are the map as node 0 sees all of it, and what it does. Node 0 prints what the test waits for,
// and "ok" when all was as it should be.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "apps/mapview/loader.hpp"
#include "apps/mapview/viewer.hpp"
#include "strata/error.hpp"
#include "strata/membership.hpp"
#include "strata/remote_thread.hpp"
#include "strata/runtime.hpp"
#include "strata/thread.hpp"
#include "tests/common/require.hpp"
#include "tests/common/say.hpp"

namespace {

using namespace mapview;
using namespace strata;
using test::require;
using test::say;

void do_nothing() {}
bool has_left(node_id_t n) {
  if (is_member(n)) return false;
  try {
    call<do_nothing>(on_node{n});
    return false;
  } catch (const node_left_error&) {
    return true;
  } catch (const misuse_error&) {  // not heard of yet
    return false;
  }
}

struct known_map {
  explicit known_map(const std::string& root) : info(read_map(root)) {
    const auto loader = make_threaded_loader(root, info);
    expected = viewer(info, *loader).show(whole());
    require(expected.missing.empty(), "a map without holes");
  }
  [[nodiscard]] view whole() const { return {{0, 0, info.width, info.height}, 350, 250}; }
  void expect_whole(loader& l, const char* what) const {
    const viewer::shown s = viewer(info, l).show(whole());
    require(s.missing.empty(), std::string(what) + ": a tile is missing");
    require(s.tiles == expected.tiles, std::string(what) + ": each tile comes once");
    require(s.window.rgb == expected.window.rgb, std::string(what) + ": another picture");
  }
  map_info info;
  viewer::shown expected;
};

// By a list from before a node left.
void replaced(const std::string& root) {
  const known_map known(root);
  say("ready");
  while (!has_left(1)) this_thread::yield();
  using list = std::vector<node_id_t>;
  for (const list& nodes : {list{0, 1}, list{1, 0}, list{1}, list{1, 1, 1}}) {
    const auto loader = make_cluster_loader(root, known.info, [&] { return nodes; });
    known.expect_whole(*loader, "the others do what was a leaver's");
  }
}

void come_and_go(const std::string& root) {
  const known_map known(root);
  const auto loader = make_loader(root, known.info);
  known.expect_whole(*loader, "alone");
  say("alone");
  bool said = false;
  while (!has_left(1) || !has_left(2)) {
    known.expect_whole(*loader, "in between");
    if (!said && is_member(1)) {
      said = true;
      say("together");
    }
  }
  known.expect_whole(*loader, "alone again");
}

// Each node is in a folder of its own: what lies in "map" there the others do not see.
void of_own_folders(const std::string& root) {
  const known_map known(root);
  const auto loader = make_loader("map", known.info);
  known.expect_whole(*loader, "each from its node");
  const auto odd = make_cluster_loader("map", known.info, [] {
    return std::vector<node_id_t>{1, 0};
  });
  known.expect_whole(*odd, "the other way round");
  say("of two");
  // Folders belong to other nodes from now on, one of which has none.
  for (auto all = members(); !is_member(2); all = await_members_other_than(all)) {
  }
  known.expect_whole(*loader, "with a newcomer that has no folder");
  say("of three");
  while (!has_left(1)) this_thread::yield();
  const viewer::shown s = viewer(known.info, *loader).show(known.whole());
  require(s.tiles == known.expected.tiles, "each tile comes once, as missing, too");
  std::size_t of_leaver = 0;
  for (const tile_place& t : tiles_of(known.info, known.whole().region))
    of_leaver += known.info.folder_of(t.column, t.row) == 1 ? 1 : 0;
  require(s.missing.size() == of_leaver, "what the leaver alone had is missing");
  require(
      std::all_of(s.missing.begin(), s.missing.end(),
                  [&](const tile_place& t) { return known.info.folder_of(t.column, t.row) == 1; }),
      "and nothing else");
}

}  // namespace

int main(int argc, char** argv) {
  static const std::map<std::string_view, void (*)(const std::string&)> actions{
      {"come-and-go", come_and_go}, {"of-own-folders", of_own_folders}, {"replaced", replaced}};
  try {
    const options settings = options::parse(argc, argv);
    runtime rt(settings);
    rt.run([&] { actions.at(argv[argc - 1])(argv[argc - 2]); });
    say("ok");
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
