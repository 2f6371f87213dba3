// SPDX-License-Identifier: Apache-2.0
// The nodes keep their own folders: they decode and scale what lies there, and only the fragments
// travel, as messages. A node that has done its own takes part in what others have left: tiles
// whose files it can read, too, are loaded there.
#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <new>
#include <optional>
#include <strata/call.hpp>
#include <strata/error.hpp>
#include <strata/fork_join.hpp>
#include <strata/message.hpp>
#include <strata/remote_thread.hpp>
#include <strata/thread.hpp>
#include <utility>
#include <vector>

#include "apps/mapview/loader.hpp"

namespace mapview {
namespace {

using namespace strata;

// What travels to the nodes.
struct order {
  endpoint_id viewer;
  endpoint_id owner;  // on the node in whose folders the tiles lie
  map_info map;
  view shown;
  std::array<char, 1024> root{};
};
enum class found : std::uint32_t {
  whole,
  missing,
  out_of_memory,
  failed,  // not of a tile: joining the node's call tells why
};
// What a fragment's message begins with; its pixels follow if it is whole or missing.
struct fragment_head {
  tile_place tile;
  rectangle pixels;
  found how;
};

// What the owner of a tile hears that was not found where it was to be loaded; and at the end, how
// many there have been.
struct not_found {
  tile_place tile;
  bool is_end = false;
  std::uint32_t all = 0;
};

std::vector<std::byte> packed(const fragment& f) {
  const fragment_head head{f.tile, f.pixels, f.missing ? found::missing : found::whole};
  std::vector<std::byte> bytes(sizeof(head) + f.shown.rgb.size());
  std::memcpy(bytes.data(), &head, sizeof(head));
  if (!f.shown.rgb.empty())
    std::memcpy(bytes.data() + sizeof(head), f.shown.rgb.data(), f.shown.rgb.size());
  return bytes;
}

// The viewer waits for every tile, so it is told of those that cannot be had, too. False: there is
// no such tile here, and this is not the node that should have it.
bool send_fragment(endpoint& mine, const order& o, tile_place tile) {
  try {
    try {
      const fragment f = load_fragment(o.root.data(), o.map, o.shown, tile);
      if (f.missing && node_id() != o.owner.node()) return false;
      mine.send(o.viewer, 0, packed(f));
    } catch (const std::bad_alloc&) {
      const fragment_head head{tile, {}, found::out_of_memory};
      mine.send_value(o.viewer, 0, head);
    }
  } catch (const endpoint_closed_error&) {  // the viewer has given up
  } catch (const node_lost_error&) {        // with its node
  }
  return true;
}

bool is_of_owner(const order& o, tile_place tile) {
  return o.map.folder_of(tile.column, tile.row) % num_nodes() == o.owner.node();
}

// Of those of the region's tiles [first, end) that are the owner's any part may be loaded on
// another node. Returns how many the owner has been told of, since they were not found there.
std::uint32_t load_tiles(const order& o, std::uint32_t first, std::uint32_t end) {
  const tile_grid grid = grid_of(o.map, o.shown.region);
  // Nothing to share; in many there are several.
  constexpr std::uint32_t many = 64;
  std::uint32_t owned = 0;
  for (std::uint32_t i = first; i < end && end - first < many; ++i)
    owned += is_of_owner(o, grid.at(i)) ? 1U : 0U;
  if (end - first >= many || owned > 1) {
    const std::uint32_t middle = first + (end - first) / 2;
    const auto [near, far] = fork2join([&] { return load_tiles(o, first, middle); },
                                       strata::call<load_tiles>(o, middle, end));
    return near + far;
  }
  if (owned == 0) return 0;
  while (!is_of_owner(o, grid.at(first))) ++first;
  endpoint mine;
  const bool is_sent = send_fragment(mine, o, grid.at(first));
  if (!is_sent) mine.send_value(o.owner, 0, not_found{grid.at(first)});
  this_thread::yield();  // the viewer may have something to draw
  return is_sent ? 0 : 1;
}

// The owner's: loads what others have not found. While they still look: what they say takes room,
// so somebody has to listen.
void load_not_found(endpoint& mine, const order& o) {
  std::uint32_t loaded = 0;
  for (not_found end; !end.is_end || loaded < end.all;) {
    const auto next = mine.receive_value<not_found>();
    if (next.is_end) {
      end = next;
    } else {
      (void)send_fragment(mine, o, next.tile);
      ++loaded;
    }
  }
}

template <class F>
std::exception_ptr problem_of(const F& f) noexcept {
  try {
    f();
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

void serve_tiles(order o) {
  endpoint mine;
  o.owner = mine.id();
  std::exception_ptr problems[3];
  thread listener([&] { problems[0] = problem_of([&] { load_not_found(mine, o); }); });
  not_found end{{}, true};
  problems[1] =
      problem_of([&] { end.all = load_tiles(o, 0, grid_of(o.map, o.shown.region).size()); });
  problems[2] = problem_of([&] { mine.send_value(mine.id(), 0, end); });
  listener.join();
  for (const std::exception_ptr& p : problems) {
    if (p != nullptr) std::rethrow_exception(p);
  }
}

// On each node.
void serve(const order& o) {
  const std::exception_ptr problem = problem_of([&] { serve_tiles(o); });
  if (problem == nullptr) return;
  // The viewer need not wait for what does not come; what is wrong it learns from this call.
  (void)problem_of([&] {
    endpoint mine;
    mine.send_value(o.viewer, 0, fragment_head{{}, {}, found::failed});
  });
  std::rethrow_exception(problem);
}

// The calls of serve(). When the viewer gives up, it closes its endpoint first, so that they end.
struct serving_nodes {
  serving_nodes() = default;
  ~serving_nodes() {
    for (remote_thread& t : calls) {
      try {
        if (t.joinable()) t.join();
      } catch (const std::exception&) {  // what made the viewer give up says more
      }
    }
  }
  serving_nodes(const serving_nodes&) = delete;
  serving_nodes& operator=(const serving_nodes&) = delete;
  std::vector<remote_thread> calls;
};

class cluster_loader final : public loader {
 public:
  cluster_loader(const std::string& root, const map_info& map) : map_(map) {
    if (root.size() >= root_.size()) throw user_error("the map's path is longer than 1023 bytes");
    std::copy(root.begin(), root.end(), root_.begin());
  }

  void load(const view& v, const std::function<void(const fragment&)>& take) override {
    serving_nodes nodes;
    std::optional<endpoint> mine(std::in_place);
    const order o{mine->id(), {}, map_, v, root_};
    for (unsigned n = 0; n < num_nodes(); ++n)
      nodes.calls.emplace_back(on_node{static_cast<node_id_t>(n)}, call<serve>(o));
    for (std::size_t left = tiles_of(map_, v.region).size(); left != 0; --left) {
      const message m = mine->receive_message();
      fragment_head head;
      if (m.content.size() < sizeof(head)) throw error("a fragment without a head");
      std::memcpy(&head, m.content.data(), sizeof(head));
      if (head.how == found::out_of_memory) throw std::bad_alloc();
      if (head.how == found::failed) {
        mine.reset();  // the others need not wait for room
        break;
      }
      fragment f{head.tile, head.pixels, head.how == found::missing, {}};
      f.shown = picture(head.pixels.width, head.pixels.height);
      if (m.content.size() != sizeof(head) + f.shown.rgb.size())
        throw error("a fragment of another size");
      if (!f.shown.rgb.empty())
        std::memcpy(f.shown.rgb.data(), m.content.data() + sizeof(head), f.shown.rgb.size());
      take(f);
    }
    for (remote_thread& t : nodes.calls) t.join();
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
