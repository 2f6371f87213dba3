// SPDX-License-Identifier: Apache-2.0
// The wavefront over nodes: a tile is an activation on its strip's node; borders between groups
// travel as items of a mailbox that each node has.
#include "apps/align/wavefront_nodes.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <strata/detail/check.hpp>
#include <strata/error.hpp>
#include <strata/fiber.hpp>
#include <strata/mailbox.hpp>
#include <string>

#include "apps/align/share.hpp"

namespace align {
namespace {

constexpr std::size_t fields_max = 2;
using mailbox_ptr = strata::global_ptr<strata::mailbox>;

// What all nodes must agree on.
struct plan {
  int fields = 0;
  std::array<bool, fields_max> reverse{};
  std::array<int, fields_max> height_index{}, block_steps{};
  char kernels[16] = {};
  std::uint32_t checksum = 0;
};

struct best_report {
  std::int64_t score = 0, count = 0;
  cell first;
};
struct report {
  node_work work;
  std::array<best_report, fields_max> best;
};

// Where a node's results go.
struct destination {
  strata::global_ptr<report> result;
  std::array<strata::global_ptr<std::int32_t>, fields_max> maxima;
  strata::slot_ptr arrived;  // one signal per group and one per node
};

// What travels in front of a border.
struct item_head {
  enum class what : std::int32_t { border, farewell } kind = what::border;
  std::int32_t field = 0, strip = 0, block = 0;
  std::int32_t bytes = 0;         // the border's format
  std::int32_t unused = 0;        // no indeterminate padding on the wire
  strata::slot_ptr acknowledged;  // farewell
};

// One field on one node.
struct front {
  front(sweep& s, share which)
      : tiles(s),
        mine(which),
        strips(std::make_unique<strip[]>(static_cast<std::size_t>(s.strips()))),
        arrived(std::make_unique<std::atomic<int>[]>(static_cast<std::size_t>(s.blocks()))) {
    for (int r = 0; r < s.strips(); ++r) {
      at(r).done.store(s.first_block(r), std::memory_order_relaxed);
      at(r).claimed.store(s.first_block(r), std::memory_order_relaxed);
    }
    for (int c = 0; c < s.blocks(); ++c)
      arrived[static_cast<std::size_t>(c)].store(-1, std::memory_order_relaxed);
  }

  // Tiles of a strip run in order. Invariant: done <= claimed <= done + 1.
  struct alignas(64) strip {
    std::atomic<int> done, claimed;
  };
  strip& at(int r) { return strips[static_cast<std::size_t>(r)]; }
  [[nodiscard]] bool exists(int r, int c) const {
    return r >= 0 && r < tiles.strips() && c >= tiles.first_block(r) && c < tiles.end_block(r);
  }

  // Takes the next tile of a strip of this node if it is ready and not taken; returns its block or
  // -1. As in wavefront_fork_join.cpp: both predecessors publish, then look, all seq_cst.
  int try_claim(int r) {
    if (r >= tiles.strips() || !mine.owns(r)) return -1;
    int c = at(r).done.load();
    if (c == tiles.end_block(r)) return -1;
    if (exists(r - 1, c)) {
      const bool ready = mine.begins_group(r) ? arrived[static_cast<std::size_t>(c)].load() >= r
                                              : at(r - 1).done.load() > c;
      if (!ready) return -1;
    }
    return at(r).claimed.compare_exchange_strong(c, c + 1) ? c : -1;
  }

  // Before a border for strip r is stored: whoever used its place last has finished. (That this
  // node knows of it is what makes the store ordered after it.)
  void check_free(int r, int c) {
    const int last = mine.last_before(r);
    if (exists(last, c)) STRATA_CHECK(at(last).done.load() > c, last, c, r);
  }

  sweep& tiles;
  share mine;
  std::unique_ptr<strip[]> strips;
  // Of each block: the last strip that has its border from the node above. Grows.
  std::unique_ptr<std::atomic<int>[]> arrived;
  mailbox_ptr below;
};

// A node's part in a comparison.
struct team {
  std::vector<sequence> other_strand;       // at most one; empty on node 0
  std::vector<std::unique_ptr<sweep>> own;  // empty on node 0
  std::vector<std::unique_ptr<front>> fronts;
  std::atomic<std::int64_t> tiles_left{0};
  std::atomic<std::int64_t> bytes_sent{0};
  node_work work;
  destination results;
  apps::progress* progress = nullptr;
};

struct lent {
  const sequence* query = nullptr;
  const sequence* ref = nullptr;
  scoring score;
};
// One comparison at a time in a process: written before the runtime starts, and before and after
// any tile runs.
lent lent_here;
std::unique_ptr<team> team_here;

std::uint32_t checksum(const lent& l) {
  const auto add = [](uLong sum, const sequence& s) {
    return crc32_z(sum, s.codes.data(), s.size());
  };
  uLong sum = add(add(0, *l.query), *l.ref);
  const std::array<std::uint64_t, 6> rest{l.query->size(),
                                          l.ref->size(),
                                          static_cast<std::uint64_t>(l.score.match),
                                          static_cast<std::uint64_t>(l.score.mismatch),
                                          static_cast<std::uint64_t>(l.score.open),
                                          static_cast<std::uint64_t>(l.score.extend)};
  sum = crc32_z(sum, reinterpret_cast<const unsigned char*>(rest.data()), sizeof rest);
  return static_cast<std::uint32_t>(sum);
}

std::string node_name() { return "node " + std::to_string(strata::node_id()); }

// ---- what a node does for its tiles ----

struct tile : strata::threaded {
  int field, r, c;
  void start();
};

void run_soon(int field, int r, int c) { strata::invoke<tile>(strata::node_id(), field, r, c); }

void claim(int field, int r) {
  const int c = team_here->fronts[static_cast<std::size_t>(field)]->try_claim(r);
  if (c >= 0) run_soon(field, r, c);
}

std::vector<std::byte> pack_border(const front& f, int field, int r, int c) {
  const sweep::border_view leaving = f.tiles.border_below(r, c);
  std::vector<std::byte> item(sizeof(item_head) + leaving.data.size());
  item_head head;
  head.field = field;
  head.strip = r + 1;
  head.block = c;
  head.bytes = leaving.bytes ? 1 : 0;
  std::memcpy(item.data(), &head, sizeof head);
  std::memcpy(item.data() + sizeof head, leaving.data.data(), leaving.data.size());
  return item;
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
    const auto blocks = static_cast<std::size_t>(f.tiles.blocks());
    f.mine.for_each_group([&](int first, int end) {
      const auto at = static_cast<std::size_t>(first) * blocks;
      const auto count = static_cast<std::size_t>(end - first) * blocks;
      if (!elsewhere) return strata::sync(to.arrived);
      r.work.bytes_sent += static_cast<std::int64_t>(count * sizeof(std::int32_t));
      strata::block_move_sync(strata::to_global(f.tiles.maxima().data() + at),
                              to.maxima[i] + static_cast<std::ptrdiff_t>(at), count, to.arrived);
    });
  }
  // Last: it may be the end of everything here.
  strata::put_sync(r, to.result, to.arrived);
}

void tile::start() {
  team& t = *team_here;
  front& f = *t.fronts[static_cast<std::size_t>(field)];
  f.tiles.run_tile(r, c);
  if (t.progress) t.progress->add(1);
  std::vector<std::byte> border;
  if (f.exists(r + 1, c) && f.mine.ends_group(r)) border = pack_border(f, field, r, c);
  // Before the border leaves: what comes of it may be here, and look at `done`, at once.
  f.at(r).done.store(c + 1);
  if (!border.empty()) {
    strata::drop_in(f.below, border.data(), border.size());
    t.bytes_sent.fetch_add(static_cast<std::int64_t>(border.size()), std::memory_order_relaxed);
  }
  // Down first: what lies at the bottom of a group is waited for elsewhere.
  if (!f.mine.ends_group(r)) claim(field, r + 1);
  claim(field, r);
  // From here on others may run the last tile; then this one would be gone but for its own count.
  if (t.tiles_left.fetch_sub(1) == 1) send_results(t);
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
      team_here.reset();
      sync(head.acknowledged);
      return terminate();
    }
    STRATA_CHECK(head.field >= 0 && static_cast<std::size_t>(head.field) < team_here->fronts.size(),
                 head.field);
    front& f = *team_here->fronts[static_cast<std::size_t>(head.field)];
    STRATA_CHECK(f.exists(head.strip - 1, head.block), head.strip, head.block);
    f.check_free(head.strip, head.block);
    f.tiles.set_border_above(
        head.strip, head.block,
        {std::span(item).subspan(sizeof head, size - sizeof head), head.bytes != 0});
    f.arrived[static_cast<std::size_t>(head.block)].store(head.strip);
    claim(head.field, head.strip);
  }
  [[nodiscard]] static std::size_t largest() {
    std::size_t most = 0;
    for (const auto& f : team_here->fronts) most = std::max(most, f->tiles.border_bytes_max());
    return most;
  }

  strata::fiber<&inbox::arrived> ARRIVED{this, 1, 1};
  strata::mailbox box{to_sptr(ARRIVED)};
};

// ---- getting ready ----

void add_front(team& t, sweep& s, int node, bool from_behind) {
  const int nodes = static_cast<int>(strata::num_nodes());
  t.fronts.push_back(
      std::make_unique<front>(s, share(s.strips(), s.blocks(), nodes, node, from_behind)));
  front& f = *t.fronts.back();
  for (int r = 0; r < s.strips(); ++r) {
    if (!f.mine.owns(r)) continue;
    t.work.tiles += s.end_block(r) - s.first_block(r);
    t.work.cells += s.cells(r);
  }
  t.tiles_left.store(t.work.tiles);
}

// A node other than 0 takes part.
struct enlist : strata::threaded {
  plan what;
  strata::global_ptr<mailbox_ptr> address;
  strata::slot_ptr ready;

  void start() {
    if (lent_here.query == nullptr || checksum(lent_here) != what.checksum)
      throw strata::user_error(node_name() +
                               " has other sequences or parameters than node 0; give all nodes the "
                               "same files and flags");
    const kernel_set* const kernels = find_kernels(what.kernels);
    if (kernels == nullptr)
      throw strata::user_error(node_name() + " cannot run the " + what.kernels +
                               " instructions of node 0; choose others with --kernels");
    team_here = std::make_unique<team>();
    team& t = *team_here;
    for (std::size_t i = 0; i < static_cast<std::size_t>(what.fields); ++i) {
      if (what.reverse[i]) t.other_strand.push_back(reverse_complement(*lent_here.query));
      sweep_options o;
      o.score = lent_here.score;
      o.kernels = kernels;
      o.height_index = what.height_index[i];
      o.block_steps = what.block_steps[i];
      t.own.push_back(std::make_unique<sweep>(
          letters_view{what.reverse[i] ? t.other_strand.back().codes : lent_here.query->codes},
          letters_view{lent_here.ref->codes}, o));
      add_front(t, *t.own.back(), strata::node_id(), i % 2 != 0);
    }
    strata::invoke<inbox>(strata::node_id(), address, ready);
    terminate();
  }
};

struct connect : strata::threaded {
  std::array<mailbox_ptr, fields_max> below;
  destination results;
  strata::slot_ptr ready;

  void start() {
    team& t = *team_here;
    for (std::size_t i = 0; i < t.fronts.size(); ++i) t.fronts[i]->below = below[i];
    t.results = results;
    const bool has_work = t.work.tiles > 0;
    sync(ready);
    if (!has_work) send_results(t);
    terminate();
  }
};

struct begin : strata::threaded {
  int field;
  void start() {
    claim(field, 0);
    terminate();
  }
};

}  // namespace

void lend_sequences(const sequence& query, const sequence& ref, const scoring& score) {
  lent_here = {&query, &ref, score};
}

std::vector<node_work> run_on_nodes(const std::vector<field>& fields,
                                    const std::vector<sweep*>& sweeps, const driver& d) {
  const unsigned nodes = strata::num_nodes();
  const auto each_node = [&](auto&& f) {
    for (unsigned n = 0; n < nodes; ++n) f(static_cast<strata::node_id_t>(n));
  };
  STRATA_CHECK(lent_here.query != nullptr);
  plan what;
  what.fields = static_cast<int>(fields.size());
  what.checksum = checksum(lent_here);
  std::strncpy(what.kernels, d.kernels->name, sizeof what.kernels - 1);
  team_here = std::make_unique<team>();
  team_here->progress = d.progress;
  std::uint32_t groups = 0;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    what.reverse[i] = fields[i].reverse_strand;
    what.height_index[i] = sweeps[i]->height_index();
    what.block_steps[i] = sweeps[i]->block_steps();
    add_front(*team_here, *sweeps[i], 0, i % 2 != 0);
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
    std::array<mailbox_ptr, fields_max> below;
    destination results;
    for (std::size_t i = 0; i < fields.size(); ++i) {
      below[i] = boxes[(i % 2 != 0 ? n + nodes - 1 : n + 1u) % nodes];
      results.maxima[i] = strata::to_global(sweeps[i]->maxima().data());
    }
    results.result = strata::to_global(&reports[n]);
    results.arrived = complete.sptr();
    strata::invoke<connect>(n, below, results, connected.sptr());
  });
  connected.wait();

  // 3. The first strip of each field.
  for (std::size_t i = 0; i < fields.size(); ++i)
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
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const best_report& b = reports[n].best[i];
      sweeps[i]->merge_best(static_cast<std::int32_t>(b.score), b.first, b.count);
    }
  });
  return out;
}

}  // namespace align
