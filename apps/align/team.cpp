// SPDX-License-Identifier: Apache-2.0
// An activation runs tiles of one block from the top of what is ready down to the end of a group;
// what leaves a group travels as an item of a mailbox that each node has.
#include "apps/align/team.hpp"

#include <algorithm>
#include <cstring>
#include <strata/detail/check.hpp>
#include <strata/fiber.hpp>
#include <strata/mailbox.hpp>

#include "apps/align/share.hpp"

namespace align {

std::unique_ptr<team> team_here;

namespace {

// Takes the first of the ready tiles.
struct tile : strata::threaded {
  void start();
};

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

}  // namespace

void claim(int part, int r) {
  front& f = *team_here->fronts[static_cast<std::size_t>(part)];
  const int c = f.try_claim(r);
  if (c < 0) return;
  team_here->ready.push({part, f.mine.group(r, c), r, c});
  strata::invoke<tile>(strata::node_id());
}

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

namespace {

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

}  // namespace

void open_inbox(const strata::global_ptr<mailbox_ptr>& address, const strata::slot_ptr& ready) {
  strata::invoke<inbox>(strata::node_id(), address, ready);
}

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

}  // namespace align
