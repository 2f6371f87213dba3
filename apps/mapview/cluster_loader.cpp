// SPDX-License-Identifier: Apache-2.0
// The nodes keep their own folders: they decode and scale what lies there, and only the fragments
// travel, as messages.
#include <algorithm>
#include <array>
#include <cstring>
#include <strata/error.hpp>
#include <strata/message.hpp>
#include <strata/remote_thread.hpp>
#include <strata/thread.hpp>
#include <vector>

#include "apps/mapview/loader.hpp"

namespace mapview {
namespace {

using namespace strata;

// What travels to the nodes.
struct order {
  endpoint_id viewer;
  map_info map;
  view shown;
  std::array<char, 1024> root{};
};
// What a fragment's message begins with; its pixels follow.
struct fragment_head {
  tile_place tile;
  rectangle pixels;
  std::uint32_t missing;
};

void send_fragment(endpoint& mine, const order& o, tile_place tile) {
  const fragment f = load_fragment(o.root.data(), o.map, o.shown, tile);
  const fragment_head head{f.tile, f.pixels, f.missing ? 1U : 0U};
  std::vector<std::byte> bytes(sizeof(head) + f.shown.rgb.size());
  std::memcpy(bytes.data(), &head, sizeof(head));
  if (!f.shown.rgb.empty())
    std::memcpy(bytes.data() + sizeof(head), f.shown.rgb.data(), f.shown.rgb.size());
  mine.send(o.viewer, 0, std::move(bytes));
}

// On each node: a thread for each tile of its folders.
void serve(const order& o) {
  endpoint mine;
  std::vector<thread> threads;
  for (const tile_place tile : tiles_of(o.map, o.shown.region)) {
    if (o.map.folder_of(tile.column, tile.row) % num_nodes() != node_id()) continue;
    threads.emplace_back([&mine, &o, tile] { send_fragment(mine, o, tile); });
  }
  for (thread& t : threads) t.join();
}

class cluster_loader final : public loader {
 public:
  cluster_loader(const std::string& root, const map_info& map) : map_(map) {
    if (root.size() >= root_.size()) throw user_error("the map's path is longer than 1023 bytes");
    std::copy(root.begin(), root.end(), root_.begin());
  }

  void load(const view& v, const std::function<void(const fragment&)>& take) override {
    endpoint mine;
    const order o{mine.id(), map_, v, root_};
    std::vector<remote_thread> nodes;
    for (unsigned n = 0; n < num_nodes(); ++n)
      nodes.emplace_back(on_node{static_cast<node_id_t>(n)}, call<serve>(o));
    for (std::size_t left = tiles_of(map_, v.region).size(); left != 0; --left) {
      const message m = mine.receive_message();
      fragment_head head;
      if (m.content.size() < sizeof(head)) throw error("a fragment without a head");
      std::memcpy(&head, m.content.data(), sizeof(head));
      fragment f{head.tile, head.pixels, head.missing != 0, {}};
      f.shown = picture(head.pixels.width, head.pixels.height);
      if (m.content.size() != sizeof(head) + f.shown.rgb.size())
        throw error("a fragment of another size");
      if (!f.shown.rgb.empty())
        std::memcpy(f.shown.rgb.data(), m.content.data() + sizeof(head), f.shown.rgb.size());
      take(f);
    }
    for (remote_thread& t : nodes) t.join();
  }

 private:
  map_info map_;
  std::array<char, 1024> root_{};
};

}  // namespace

std::unique_ptr<loader> make_cluster_loader(std::string root, const map_info& map) {
  return std::make_unique<cluster_loader>(root, map);
}

}  // namespace mapview
