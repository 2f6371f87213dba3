// SPDX-License-Identifier: Apache-2.0
#include "apps/mapview/cluster_serving.hpp"

#include <exception>
#include <new>
#include <strata/call.hpp>
#include <strata/error.hpp>
#include <strata/fork_join.hpp>
#include <strata/message.hpp>
#include <strata/thread.hpp>

#include "apps/mapview/problem_of.hpp"
#include "apps/mapview/send_at_last.hpp"

namespace mapview {

namespace {

// False: there is no such tile here, and the viewer need not be told of that.
bool send_fragment(strata::endpoint& mine, const order& o, tile_place tile, bool tells_of_missing) {
  try {
    try {
      const fragment f = load_fragment(o.root.data(), o.map, o.shown, tile);
      if (f.missing && !tells_of_missing) return false;
      mine.send(o.viewer, 0, packed(f));
    } catch (const std::bad_alloc&) {
      const fragment_head head{tile, {}, found::out_of_memory};
      mine.send_value(o.viewer, 0, head);
    }
  } catch (const strata::endpoint_closed_error&) {  // the viewer has given up
  } catch (const strata::node_lost_error&) {        // with its node
  }
  return true;
}

// Of those of the tiles [first, end) that are the owner's any may be loaded on another node.
// Returns how many the owner has been told of, since they were not found there.
std::uint32_t load_tiles(const order& o, std::uint32_t first, std::uint32_t end) {
  const tile_grid& grid = o.tiles;
  // Nothing to share; in many there are several.
  constexpr std::uint32_t many = 64;
  std::uint32_t owned = 0;
  for (std::uint32_t i = first; i < end && end - first < many; ++i)
    owned += o.part_of(grid.at(i)) == o.part ? 1U : 0U;
  if (end - first >= many || owned > 1) {
    const std::uint32_t middle = first + (end - first) / 2;
    const auto [near, far] = strata::fork2join([&] { return load_tiles(o, first, middle); },
                                               strata::call<load_tiles>(o, middle, end));
    return near + far;
  }
  if (owned == 0) return 0;
  while (o.part_of(grid.at(first)) != o.part) ++first;
  strata::endpoint mine;
  // The owner tells the viewer, which waits for every tile.
  const bool is_sent = send_fragment(mine, o, grid.at(first), strata::node_id() == o.owner.node());
  if (!is_sent) mine.send_value(o.owner, 0, not_found{grid.at(first)});
  strata::this_thread::yield();  // the viewer may have something to draw
  return is_sent ? 0 : 1;
}

// The owner's: loads what others have not found. While they still look: what they say takes room,
// so somebody has to listen.
void load_not_found(strata::endpoint& mine, const order& o) {
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

void seek_among(const order& o, const some_tiles& some, std::uint32_t first, std::uint32_t end,
                tiles_found& all) {
  if (end - first > 1) {
    const std::uint32_t middle = first + (end - first) / 2;
    strata::fork2join([&] { seek_among(o, some, first, middle, all); },
                      [&] { seek_among(o, some, middle, end, all); });
  } else if (first != end) {
    strata::endpoint mine;
    all.here[first] = send_fragment(mine, o, o.tiles.at(some.numbers[first]), false);
  }
}

}  // namespace

void serve_part(order o) {
  strata::endpoint mine;
  o.owner = mine.id();
  std::exception_ptr problems[3];
  strata::thread listener([&] { problems[0] = problem_of([&] { load_not_found(mine, o); }); });
  not_found end{{}, true};
  problems[1] = problem_of([&] { end.all = load_tiles(o, 0, o.tiles.size()); });
  problems[2] = problem_of([&] { send_at_last(mine, mine.id(), end); });
  listener.join();
  for (const std::exception_ptr& p : problems) {
    if (p != nullptr) std::rethrow_exception(p);
  }
}

tiles_found seek(const order& o, const some_tiles& some) {
  tiles_found all;
  seek_among(o, some, 0, some.count, all);
  return all;
}

}  // namespace mapview
