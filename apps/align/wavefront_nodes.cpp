// SPDX-License-Identifier: Apache-2.0
// How a comparison over nodes begins and ends: everybody gets a mailbox, hears of the others', runs
// its tiles (team.hpp), and tells node 0 what it has found.
#include "apps/align/wavefront_nodes.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <strata/detail/check.hpp>
#include <strata/fiber.hpp>
#include <strata/mailbox.hpp>

#include "apps/align/lent.hpp"
#include "apps/align/team.hpp"
#include "apps/align/wavefront_words.hpp"

namespace align {
namespace {

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
    open_inbox(address, ready);
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

template <class F>
void each_node(unsigned nodes, F&& f) {
  for (unsigned n = 0; n < nodes; ++n) f(static_cast<strata::node_id_t>(n));
}

// Everybody has a mailbox.
std::vector<mailbox_ptr> enlist_all(const plan& what) {
  std::vector<mailbox_ptr> boxes(what.nodes);
  strata::completion enlisted(what.nodes);
  open_inbox(strata::to_global(boxes.data()), enlisted.sptr());
  each_node(what.nodes, [&](strata::node_id_t n) {
    if (n != 0)
      strata::invoke<enlist>(n, what, strata::to_global(boxes.data() + n), enlisted.sptr());
  });
  enlisted.wait();
  return boxes;
}

// Everybody knows the others. `complete` hears of each result.
void connect_all(const std::vector<mailbox_ptr>& boxes, const std::vector<part>& parts,
                 std::vector<report>& reports, strata::completion& complete) {
  const auto nodes = static_cast<unsigned>(boxes.size());
  strata::completion connected(nodes);
  each_node(nodes, [&](strata::node_id_t n) {
    const neighbours beside{boxes[n > 0 ? n - 1u : 0], boxes[std::min(n + 1u, nodes - 1)]};
    destination results;
    for (std::size_t i = 0; i < parts.size(); ++i)
      results.maxima[i] = strata::to_global(parts[i].tiles->maxima().data());
    results.result = strata::to_global(&reports[n]);
    results.arrived = complete.sptr();
    strata::invoke<connect>(n, beside, results, connected.sptr());
  });
  connected.wait();
}

void dismiss_all(const std::vector<mailbox_ptr>& boxes) {
  const auto nodes = static_cast<unsigned>(boxes.size());
  strata::completion dismissed(nodes);
  each_node(nodes, [&](strata::node_id_t n) {
    item_head farewell;
    farewell.kind = item_head::what::farewell;
    farewell.acknowledged = dismissed.sptr();
    strata::drop_in(boxes[n], farewell);
  });
  dismissed.wait();
}

// The best cells go into the parts; returns the work.
std::vector<node_work> gather(const std::vector<report>& reports, const std::vector<part>& parts) {
  std::vector<node_work> out;
  for (std::size_t n = 0; n < reports.size(); ++n) {
    out.push_back(reports[n].work);
    if (n == 0) continue;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const best_report& b = reports[n].best[i];
      parts[i].tiles->merge_best(static_cast<std::int32_t>(b.score), b.first, b.count);
    }
  }
  return out;
}

}  // namespace

std::vector<node_work> run_on_nodes(const std::vector<part>& parts, const driver& d) {
  const unsigned nodes = d.nodes;
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

  const std::vector<mailbox_ptr> boxes = enlist_all(what);
  std::vector<report> reports(nodes);
  strata::completion complete(groups + nodes);
  connect_all(boxes, parts, reports, complete);
  // The first strip of each part.
  for (std::size_t i = 0; i < parts.size(); ++i)
    strata::invoke<begin>(static_cast<strata::node_id_t>(i % 2 != 0 ? nodes - 1 : 0),
                          static_cast<int>(i));
  complete.wait();
  dismiss_all(boxes);
  return gather(reports, parts);
}

}  // namespace align
