// SPDX-License-Identifier: Apache-2.0
// The wavefront over nodes: an activation runs tiles of one block from the top of what is ready
// down to the end of a group; what leaves a group travels as an item of a mailbox that each node
// has.
#include "apps/align/wavefront_nodes.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <strata/detail/check.hpp>
#include <strata/fiber.hpp>
#include <strata/mailbox.hpp>

#include "apps/align/front.hpp"
#include "apps/align/lent.hpp"
#include "apps/align/ready_tiles.hpp"
#include "apps/align/share.hpp"
#include "apps/align/wavefront_words.hpp"

namespace align {
namespace {

// A node's part in a comparison.
struct team {
  std::vector<std::unique_ptr<sweep>> own;  // empty on node 0
  std::vector<std::unique_ptr<front>> fronts;
  neighbours beside;
  ready_tiles ready;
  std::atomic<std::int64_t> tiles_left{0};
  std::atomic<std::int64_t> bytes_sent{0};
  node_work work;
  destination results;
  apps::progress* progress = nullptr;
};

// One comparison at a time in a process: written before and after any tile runs.
std::unique_ptr<team> team_here;

// ---- what a node does for its tiles ----

// Takes the first of the ready tiles.
struct tile : strata::threaded {
  void start();
};

void claim(int part, int r) {
  front& f = *team_here->fronts[static_cast<std::size_t>(part)];
  const int c = f.try_claim(r);
  if (c < 0) return;
  team_here->ready.push({part, f.mine.group(r, c), r, c});
  strata::invoke<tile>(strata::node_id());
}

// For tile (r, c) on the node below.
std::vector<std::byte> pack(item_head::what kind, int part, int r, int c,
                            sweep::scores_view leaving) {
  std::vector<std::byte> item(sizeof(item_head) + leaving.data.size());
  item_head head;
  head.kind = kind;
  head.part = part;
  head.strip = r;
  head.block = c;
  head.bytes = leaving.bytes ? 1 : 0;
  std::memcpy(item.data(), &head, sizeof head);
  std::memcpy(item.data() + sizeof head, leaving.data.data(), leaving.data.size());
  return item;
}

void send(team& t, int node, const std::vector<std::byte>& item) {
  strata::drop_in(node < static_cast<int>(strata::node_id()) ? t.beside.before : t.beside.after,
                  item.data(), item.size());
  t.bytes_sent.fetch_add(static_cast<std::int64_t>(item.size()), std::memory_order_relaxed);
}

// The node has run its last tile.
void send_results(team& t) {
  const destination to = t.results;
  report r;
  r.work = t.work;
  r.work.bytes_sent = t.bytes_sent.load(std::memory_order_relaxed);
  const bool elsewhere = to.result.node() != strata::node_id();
  for (std::size_t i = 0; i < t.fronts.size(); ++i) {
    const front& f = *t.fronts[i];
    const best_cell& best = f.tiles.best();
    r.best[i] = {best.score(), best.count(), best.first()};
    f.mine.for_each_group([&](std::int64_t first, std::int64_t end) {
      const auto at = static_cast<std::size_t>(first);
      const auto count = static_cast<std::size_t>(end - first);
      if (!elsewhere) return strata::sync(to.arrived);
      r.work.bytes_sent += static_cast<std::int64_t>(count * sizeof(std::int32_t));
      strata::block_move_sync(strata::to_global(f.tiles.maxima().data() + at),
                              to.maxima[i] + static_cast<std::ptrdiff_t>(at), count, to.arrived);
    });
  }
  // Last: it may be the end of everything here.
  strata::put_sync(r, to.result, to.arrived);
}

// Down through the group, and only then to the right: what lies at the bottom is waited for
// elsewhere. (Were the tile below one more activation, it would run after all that are ready
// already: diagonal by diagonal, and the node below could begin only after half of a square.)
void tile::start() {
  team& t = *team_here;
  const ready_tile first = t.ready.pop();
  const int part = first.part;
  front& f = *t.fronts[static_cast<std::size_t>(part)];
  int r = first.strip, c = first.block;
  while (c >= 0) {
    f.tiles.run_tile(r, c);
    if (t.progress) t.progress->add(1);
    std::vector<std::byte> border, state;
    if (f.is_elsewhere(r + 1, c))
      border = pack(item_head::what::border, part, r + 1, c, f.tiles.border_below(r, c));
    if (f.is_elsewhere(r, c + 1))
      state = pack(item_head::what::state, part, r, c + 1, f.tiles.state_of(r));
    // Before they leave: what comes of them may be here, and look at `done`, at once.
    f.at(r).done.store(c + 1);
    if (!border.empty()) send(t, f.mine.node(r + 1, c), border);
    if (!state.empty()) send(t, f.mine.node(r, c + 1), state);
    c = f.try_claim(r + 1);
    claim(part, r++);
    // From here on others may run the last tile; then the team would be gone but for the tile that
    // is claimed here, if one is.
    if (t.tiles_left.fetch_sub(1) == 1) send_results(t);
  }
  terminate();
}

// ---- the node's mailbox ----

struct inbox : strata::threaded {
  strata::global_ptr<mailbox_ptr> address;
  strata::slot_ptr ready;

  void start() { put_sync(strata::to_global(&box), address, ready); }

  void arrived() {
    std::vector<std::byte> item(sizeof(item_head) + largest());
    const std::size_t size = strata::retrieve_item(box, item.data(), item.size());
    item_head head;
    STRATA_CHECK(size >= sizeof head, size);
    std::memcpy(&head, item.data(), sizeof head);
    if (head.kind == item_head::what::farewell) {
      // Nobody waits while its memory goes back.
      const std::unique_ptr<team> dismissed = std::move(team_here);
      sync(head.acknowledged);
      return terminate();
    }
    STRATA_CHECK(head.part >= 0 && static_cast<std::size_t>(head.part) < team_here->fronts.size(),
                 head.part);
    front& f = *team_here->fronts[static_cast<std::size_t>(head.part)];
    const sweep::scores_view scores{std::span(item).subspan(sizeof head, size - sizeof head),
                                    head.bytes != 0};
    STRATA_CHECK(f.tiles.exists(head.strip, head.block) && f.mine.owns(head.strip, head.block),
                 head.strip, head.block);
    if (head.kind == item_head::what::state) {
      STRATA_CHECK(head.block == f.at(head.strip).begin, head.strip, head.block);
      f.tiles.set_state(head.strip, scores);
      f.at(head.strip).has_state.store(true);
    } else {
      STRATA_CHECK(f.tiles.exists(head.strip - 1, head.block), head.strip, head.block);
      f.check_free(head.strip, head.block);
      f.tiles.set_border_above(head.strip, head.block, scores);
      f.arrived[static_cast<std::size_t>(head.block)].store(head.strip);
    }
    claim(head.part, head.strip);
  }
  [[nodiscard]] static std::size_t largest() {
    std::size_t most = 0;
    for (const auto& f : team_here->fronts) most = std::max(most, f->tiles.scores_bytes_max());
    return most;
  }

  // One at a time: the farewell must not take away what an earlier arrival still looks at.
  strata::exclusive_fiber<&inbox::arrived> ARRIVED{this, 1, 1};
  strata::mailbox box{to_sptr(ARRIVED)};
};

// ---- getting ready ----

void add_front(team& t, sweep& s, unsigned nodes, unsigned node, bool from_behind) {
  t.fronts.push_back(std::make_unique<front>(
      s,
      share(s.strips(), s.blocks(), static_cast<int>(nodes), static_cast<int>(node), from_behind)));
  front& f = *t.fronts.back();
  for (int r = 0; r < s.strips(); ++r) {
    t.work.tiles += f.at(r).end - f.at(r).begin;
    t.work.cells += s.cells(r, f.at(r).begin, f.at(r).end);
  }
  t.tiles_left.store(t.work.tiles);
}

// A node other than 0 takes part.
struct enlist : strata::threaded {
  plan what;
  strata::global_ptr<mailbox_ptr> address;
  strata::slot_ptr ready;
  std::array<std::vector<std::int32_t>, parts_max> left;

  // One signal from start(), one when the left borders of each part are here.
  void start() {
    expect_lent(what.checksum);
    STRATA_CHECK(what.count <= parts_max, what.count);
    for (std::size_t i = 0; i < parts_max; ++i) {
      const part_plan& p = what.parts[i];
      left[i].resize(i < what.count ? static_cast<std::size_t>(p.left_borders) : 0);
      if (left[i].empty())
        sync(to_sptr(COMPLETE));
      else
        strata::block_move_sync(p.left, strata::to_global(left[i].data()), left[i].size(),
                                to_sptr(COMPLETE));
    }
    sync(to_sptr(COMPLETE));
  }

  void make_parts() {
    const kernel_set& kernels = kernels_of_node_0(what.kernels);
    team_here = std::make_unique<team>();
    team& t = *team_here;
    for (std::size_t i = 0; i < what.count; ++i) {
      const part_plan& p = what.parts[i];
      sweep_options o;
      o.score = lent_scoring();
      o.kernels = &kernels;
      o.height_index = p.height_index;
      o.block_steps = p.block_steps;
      o.phase = p.phase;
      o.top_border = p.top_border;
      o.left_borders = std::move(left[i]);
      o.only_strip = p.only_strip;
      o.only_block = p.only_block;
      t.own.push_back(std::make_unique<sweep>(lent_query(p.reverse != 0).sub(p.row, p.rows),
                                              lent_ref().sub(p.column, p.columns), o));
      add_front(t, *t.own.back(), what.nodes, strata::node_id(), i % 2 != 0);
    }
    strata::invoke<inbox>(strata::node_id(), address, ready);
    terminate();
  }

  strata::fiber<&enlist::make_parts> COMPLETE{this, 1 + parts_max, 1};
};

struct connect : strata::threaded {
  neighbours beside;
  destination results;
  strata::slot_ptr ready;

  void start() {
    team& t = *team_here;
    t.beside = beside;
    t.results = results;
    const bool has_work = t.work.tiles > 0;
    sync(ready);
    if (!has_work) send_results(t);
    terminate();
  }
};

struct begin : strata::threaded {
  int part;
  void start() {
    claim(part, 0);
    terminate();
  }
};

part_plan plan_of(const part& from) {
  const sweep& s = *from.tiles;
  const sweep_options& o = s.options();
  STRATA_CHECK(o.local);
  part_plan p;
  p.reverse = from.reverse_strand ? 1 : 0;
  p.row = from.row;
  p.rows = s.rows();
  p.column = from.column;
  p.columns = s.columns();
  p.phase = o.phase;
  p.height_index = s.height_index();
  p.block_steps = s.block_steps();
  p.top_border = o.top_border;
  p.only_strip = o.only_strip;
  p.only_block = o.only_block;
  p.left_borders = static_cast<std::int32_t>(o.left_borders.size());
  // Nobody writes there: it is read from other nodes.
  p.left = strata::to_global(const_cast<std::int32_t*>(o.left_borders.data()));
  return p;
}

}  // namespace

std::vector<node_work> run_on_nodes(const std::vector<part>& parts, const driver& d) {
  const unsigned nodes = d.nodes;
  const auto each_node = [&](auto&& f) {
    for (unsigned n = 0; n < nodes; ++n) f(static_cast<strata::node_id_t>(n));
  };
  STRATA_CHECK(parts.size() <= parts_max, parts.size());
  plan what;
  what.count = static_cast<std::uint32_t>(parts.size());
  what.nodes = nodes;
  what.checksum = lent_checksum();
  std::strncpy(what.kernels, d.kernels->name, sizeof what.kernels - 1);
  team_here = std::make_unique<team>();
  team_here->progress = d.progress;
  std::uint32_t groups = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    what.parts[i] = plan_of(parts[i]);
    add_front(*team_here, *parts[i].tiles, nodes, 0, i % 2 != 0);
    groups += static_cast<std::uint32_t>(team_here->fronts[i]->mine.groups());
  }

  // 1. Everybody has a mailbox.
  std::vector<mailbox_ptr> boxes(nodes);
  strata::completion enlisted(nodes);
  strata::invoke<inbox>(0, strata::to_global(boxes.data()), enlisted.sptr());
  each_node([&](strata::node_id_t n) {
    if (n != 0)
      strata::invoke<enlist>(n, what, strata::to_global(boxes.data() + n), enlisted.sptr());
  });
  enlisted.wait();

  // 2. Everybody knows the others.
  std::vector<report> reports(nodes);
  strata::completion complete(groups + nodes), connected(nodes);
  each_node([&](strata::node_id_t n) {
    const neighbours beside{boxes[n > 0 ? n - 1u : 0], boxes[std::min(n + 1u, nodes - 1)]};
    destination results;
    for (std::size_t i = 0; i < parts.size(); ++i)
      results.maxima[i] = strata::to_global(parts[i].tiles->maxima().data());
    results.result = strata::to_global(&reports[n]);
    results.arrived = complete.sptr();
    strata::invoke<connect>(n, beside, results, connected.sptr());
  });
  connected.wait();

  // 3. The first strip of each part.
  for (std::size_t i = 0; i < parts.size(); ++i)
    strata::invoke<begin>(static_cast<strata::node_id_t>(i % 2 != 0 ? nodes - 1 : 0),
                          static_cast<int>(i));
  complete.wait();

  strata::completion dismissed(nodes);
  each_node([&](strata::node_id_t n) {
    item_head farewell;
    farewell.kind = item_head::what::farewell;
    farewell.acknowledged = dismissed.sptr();
    strata::drop_in(boxes[n], farewell);
  });
  dismissed.wait();

  std::vector<node_work> out;
  each_node([&](strata::node_id_t n) {
    out.push_back(reports[n].work);
    if (n == 0) return;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const best_report& b = reports[n].best[i];
      parts[i].tiles->merge_best(static_cast<std::int32_t>(b.score), b.first, b.count);
    }
  });
  return out;
}

}  // namespace align
