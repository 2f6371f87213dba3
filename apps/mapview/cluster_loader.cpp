// SPDX-License-Identifier: Apache-2.0
// The nodes keep their own folders: they decode and scale what lies there, and only the fragments
// travel, as messages. A node that has done its own takes part in what others have left: tiles
// whose files it can read, too, are loaded there.
//
// The folders are dealt out to the nodes that there are when a view is asked for, a part to each;
// all nodes hear the same list. A node that has left before it could do its part is replaced by
// another, and what is not found where it should lie is looked for on all other nodes.
#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <functional>
#include <iterator>
#include <memory>
#include <new>
#include <optional>
#include <strata/call.hpp>
#include <strata/error.hpp>
#include <strata/fork_join.hpp>
#include <strata/membership.hpp>
#include <strata/message.hpp>
#include <strata/remote_thread.hpp>
#include <strata/thread.hpp>
#include <string>
#include <utility>
#include <vector>

#include "apps/mapview/loader.hpp"

namespace mapview {
namespace {

using namespace strata;

// What travels to the nodes.
struct order {
  endpoint_id viewer;
  endpoint_id owner;  // on the node that answers for this part
  map_info map;
  view shown;
  tile_grid tiles;
  std::uint32_t parts = 1, part = 0;
  std::array<char, 1024> root{};

  [[nodiscard]] std::uint32_t part_of(tile_place tile) const {
    return map.folder_of(tile.column, tile.row) % parts;
  }
};
enum class found : std::uint32_t {
  whole,
  missing,
  out_of_memory,
  all_asked,  // no tile: whoever has asked the nodes has their answers
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

fragment unpacked(const message& m, const fragment_head& head) {
  fragment f{head.tile, head.pixels, head.how == found::missing, {}};
  f.shown = picture(head.pixels.width, head.pixels.height);
  if (m.content.size() != sizeof(head) + f.shown.rgb.size())
    throw error("a fragment of another size");
  if (!f.shown.rgb.empty())
    std::memcpy(f.shown.rgb.data(), m.content.data() + sizeof(head), f.shown.rgb.size());
  return f;
}

// False: there is no such tile here, and the viewer need not be told of that.
bool send_fragment(endpoint& mine, const order& o, tile_place tile, bool tells_of_missing) {
  try {
    try {
      const fragment f = load_fragment(o.root.data(), o.map, o.shown, tile);
      if (f.missing && !tells_of_missing) return false;
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

// Of those of the tiles [first, end) that are the owner's any may be loaded on another
// node. Returns how many the owner has been told of, since they were not found there.
std::uint32_t load_tiles(const order& o, std::uint32_t first, std::uint32_t end) {
  const tile_grid& grid = o.tiles;
  // Nothing to share; in many there are several.
  constexpr std::uint32_t many = 64;
  std::uint32_t owned = 0;
  for (std::uint32_t i = first; i < end && end - first < many; ++i)
    owned += o.part_of(grid.at(i)) == o.part ? 1U : 0U;
  if (end - first >= many || owned > 1) {
    const std::uint32_t middle = first + (end - first) / 2;
    const auto [near, far] = fork2join([&] { return load_tiles(o, first, middle); },
                                       strata::call<load_tiles>(o, middle, end));
    return near + far;
  }
  if (owned == 0) return 0;
  while (o.part_of(grid.at(first)) != o.part) ++first;
  endpoint mine;
  // The owner tells the viewer, which waits for every tile.
  const bool is_sent = send_fragment(mine, o, grid.at(first), node_id() == o.owner.node());
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
      (void)send_fragment(mine, o, next.tile, true);
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

// On the node that answers for the part.
void serve(order o) {
  endpoint mine;
  o.owner = mine.id();
  std::exception_ptr problems[3];
  thread listener([&] { problems[0] = problem_of([&] { load_not_found(mine, o); }); });
  not_found end{{}, true};
  problems[1] = problem_of([&] { end.all = load_tiles(o, 0, o.tiles.size()); });
  problems[2] = problem_of([&] { mine.send_value(mine.id(), 0, end); });
  listener.join();
  for (const std::exception_ptr& p : problems) {
    if (p != nullptr) std::rethrow_exception(p);
  }
}

// ---- tiles that are not where they should be ----

struct some_tiles {
  static constexpr std::uint32_t most = 1000;  // of those that fit into a call
  std::uint32_t count = 0;
  std::array<std::uint32_t, most> numbers{};  // among those of the order
};
struct tiles_found {
  std::array<bool, some_tiles::most> here{};
  [[nodiscard]] std::uint32_t count() const {
    return static_cast<std::uint32_t>(std::count(here.begin(), here.end(), true));
  }
};

void seek_among(const order& o, const some_tiles& some, std::uint32_t first, std::uint32_t end,
                tiles_found& all) {
  if (end - first > 1) {
    const std::uint32_t middle = first + (end - first) / 2;
    fork2join([&] { seek_among(o, some, first, middle, all); },
              [&] { seek_among(o, some, middle, end, all); });
  } else if (first != end) {
    endpoint mine;
    all.here[first] = send_fragment(mine, o, o.tiles.at(some.numbers[first]), false);
  }
}

// On any node: sends those that it can read.
tiles_found seek(const order& o, const some_tiles& some) {
  tiles_found all;
  seek_among(o, some, 0, some.count, all);
  return all;
}

// ---- on the viewer's node ----

// The calls of serve(). When the viewer gives up, it closes its endpoint first, so that they end.
struct parts_in_progress {
  explicit parts_in_progress(std::size_t parts) : calls(parts) {}
  ~parts_in_progress() {
    for (remote_thread& t : calls) {
      try {
        if (t.joinable()) t.join();
      } catch (const std::exception&) {  // what made the viewer give up says more
      }
    }
  }
  parts_in_progress(const parts_in_progress&) = delete;
  parts_in_progress& operator=(const parts_in_progress&) = delete;
  std::vector<remote_thread> calls;
};

// Suspends until all parts have been served. Part k is `nodes[k]`'s; where that has left before it
// could do anything, another node's, which is noted there. (Who has begun stays until it is done.)
void serve_all(order o, std::vector<node_id_t>& nodes) {
  parts_in_progress parts(nodes.size());
  const auto begin = [&](std::size_t k) {
    o.part = static_cast<std::uint32_t>(k);
    parts.calls[k] = remote_thread(on_node{nodes[k]}, call<serve>(o));
  };
  const auto do_or_replace = [&](std::size_t k, const auto& step) {
    try {
      step();
      return true;
    } catch (const node_left_error&) {
    }
    const std::vector<node_id_t> there = members();
    nodes[k] = there[k % there.size()];
    return false;
  };
  for (std::size_t k = 0; k < nodes.size(); ++k) {
    while (!do_or_replace(k, [&] { begin(k); })) {
    }
  }
  for (std::size_t k = 0; k < nodes.size(); ++k) {
    while (!do_or_replace(k, [&] {
      if (!parts.calls[k].joinable()) begin(k);
      parts.calls[k].join();
    })) {
    }
  }
}

// Where the fragments of some tiles arrive. After an exception it is of no use.
class arrivals {
 public:
  explicit arrivals(const tile_grid& tiles)
      : grid_(tiles), seen_(grid_.size()), mine_(std::in_place) {}

  [[nodiscard]] endpoint_id id() const { return mine_->id(); }
  [[nodiscard]] std::uint32_t tiles() const { return grid_.size(); }
  // Another fragment of that tile may come.
  void await_again(tile_place tile) { seen_[index_of(tile)] = false; }

  // Makes ask() in a thread of its own, which has the nodes send and returns how many tiles come
  // with that. Meanwhile, and until they are there, calls use(fragment) for each tile, once.
  // Rethrows what any of them throws, when ask() has ended.
  template <class Ask, class Use>
  void gather(const Ask& ask, const Use& use) {
    std::uint32_t awaited = 0;
    std::exception_ptr problem;
    endpoint asker;
    thread asks([&, to = id()] {
      problem = problem_of([&] { awaited = ask(); });
      // The viewer waits for this word, so it is said however little memory there is; in vain only
      // when the viewer has given up.
      const auto say = [&] {
        try {
          asker.send_value(to, 0, fragment_head{{}, {}, found::all_asked});
          return true;
        } catch (const std::bad_alloc&) {
          return false;
        }
      };
      (void)problem_of([&] {
        while (!say()) this_thread::yield();
      });
    });
    const std::exception_ptr failure = problem_of([&] {
      bool all_asked = false;
      for (std::uint32_t come = 0; !all_asked || come < awaited;) {
        const message m = mine_->receive_message();
        fragment_head head;
        if (m.content.size() < sizeof(head)) throw error("a fragment without a head");
        std::memcpy(&head, m.content.data(), sizeof(head));
        if (head.how == found::out_of_memory) throw std::bad_alloc();
        if (head.how == found::all_asked) {
          asks.join();
          all_asked = true;
          if (problem != nullptr) std::rethrow_exception(problem);
        } else if (const std::size_t i = index_of(head.tile); !seen_[i]) {
          seen_[i] = true;
          ++come;
          use(unpacked(m, head));
        }
      }
    });
    if (failure == nullptr) return;
    mine_.reset();  // whoever still sends need not wait for room
    if (asks.joinable()) asks.join();
    std::rethrow_exception(failure);
  }

 private:
  [[nodiscard]] std::size_t index_of(tile_place tile) const {
    if (!grid_.contains(tile)) throw error("a fragment of another view");
    return grid_.number_of(tile);
  }

  const tile_grid grid_;
  std::vector<bool> seen_;
  std::optional<endpoint> mine_;
};

class cluster_loader final : public loader {
 public:
  cluster_loader(const std::string& root, const map_info& map,
                 std::function<std::vector<node_id_t>()> nodes)
      : map_(map), nodes_(std::move(nodes)) {
    if (root.size() >= root_.size()) throw user_error("the map's path is longer than 1023 bytes");
    std::copy(root.begin(), root.end(), root_.begin());
  }

  void load(const view& v, const tile_grid& tiles,
            const std::function<void(const fragment&)>& take) override {
    std::vector<node_id_t> nodes = nodes_();
    if (nodes.empty()) throw misuse_error("a cluster loader needs one node at least");
    arrivals come(tiles);
    const order o{come.id(), {},   map_, v, tiles, static_cast<std::uint32_t>(nodes.size()),
                  0,         root_};
    std::vector<fragment> unfound;
    come.gather(
        [&] {
          serve_all(o, nodes);
          return come.tiles();
        },
        [&](fragment f) {
          if (f.missing) {
            unfound.push_back(std::move(f));
          } else {
            take(f);
          }
        });
    for (const node_id_t n : members()) {
      if (unfound.empty()) return;
      seek_on(n, o, nodes, come, unfound, take);
    }
    for (const fragment& f : unfound) take(f);
  }

 private:
  // What is left of `unfound` is not there either. nodes: by part, who has not found its tiles.
  static void seek_on(node_id_t n, const order& o, const std::vector<node_id_t>& nodes,
                      arrivals& come, std::vector<fragment>& unfound,
                      const std::function<void(const fragment&)>& take) {
    const auto wanted_end = std::partition(unfound.begin(), unfound.end(), [&](const fragment& f) {
      return nodes[o.part_of(f.tile)] != n;
    });
    std::vector<fragment> left(std::make_move_iterator(wanted_end),
                               std::make_move_iterator(unfound.end()));
    for (auto at = unfound.begin(); at != wanted_end;) {
      some_tiles some;
      const auto first = at;
      for (; at != wanted_end && some.count < some_tiles::most; ++at) {
        come.await_again(at->tile);
        some.numbers[some.count++] = o.tiles.number_of(at->tile);
      }
      tiles_found all;
      come.gather(
          [&] {
            try {
              all = call<seek>(on_node{n}, o, some);
            } catch (const node_left_error&) {  // it has found nothing
            }
            return all.count();
          },
          take);
      for (std::uint32_t i = 0; i < some.count; ++i) {
        if (!all.here[i]) left.push_back(std::move(first[i]));
      }
    }
    unfound = std::move(left);
  }

  const map_info map_;
  const std::function<std::vector<node_id_t>()> nodes_;
  std::array<char, 1024> root_{};
};

// By what the job is when a view is asked for.
class adapting_loader final : public loader {
 public:
  adapting_loader(const std::string& root, const map_info& map)
      : alone_(make_threaded_loader(root, map)), together_(make_cluster_loader(root, map)) {}
  void load(const view& v, const tile_grid& tiles,
            const std::function<void(const fragment&)>& take) override {
    (members().size() == 1 ? *alone_ : *together_).load(v, tiles, take);
  }

 private:
  const std::unique_ptr<loader> alone_, together_;
};

}  // namespace

std::unique_ptr<loader> make_cluster_loader(std::string root, const map_info& map,
                                            std::function<std::vector<node_id_t>()> nodes) {
  return std::make_unique<cluster_loader>(root, map, std::move(nodes));
}

std::unique_ptr<loader> make_loader(const std::string& root, const map_info& map) {
  return std::make_unique<adapting_loader>(root, map);
}

}  // namespace mapview
