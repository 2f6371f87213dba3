// SPDX-License-Identifier: Apache-2.0
// What goes along a tree, and what everybody gets from everybody.
#include "messages/groups/collectives.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "messages/groups/blocks.hpp"
#include "messages/groups/scratch.hpp"
#include "messages/groups/tree.hpp"

namespace strata::messages {
namespace {

// From the root to all; every member gets the blocks of its subtree, which are the first in `mine`.
// At the root `mine` is all of them.
void deal(member& me, const tree& t, const blocks& cut, byte_room mine) {
  const std::size_t start = cut.begin(t.mine().first);
  if (t.parent()) me.receive(*t.parent(), mine);
  std::vector<member::sending> sends;
  // The largest first: it has the longest way before it.
  for (std::size_t i = t.children().size(); i-- > 0;) {
    const subtree& child = t.children()[i];
    const std::size_t from = cut.begin(child.first);
    sends.push_back(
        me.start_send(child.head, mine.subspan(from - start, cut.begin(child.last) - from)));
  }
  for (member::sending& s : sends) me.finish(s);
}

}  // namespace

// Everybody has its own block in `all`. In round k it also has those of the 2^k - 1 members that
// follow, and gives them to the member 2^k ranks back: J. Bruck et al., 1997,
// doi:10.1109/71.642949, where they are collected from the own one on and turned in the end; here
// they are in their places at once, and where they run over the end they are two messages.
void exchange_blocks(member& me, const blocks& cut, byte_room all) {
  const std::uint64_t n = me.size();
  for (std::uint64_t far = 1; far < n; far *= 2) {
    const std::uint64_t count = std::min(far, n - far);
    const auto to = static_cast<unsigned>((me.rank() + n - far) % n);
    const auto from = static_cast<unsigned>((me.rank() + far) % n);
    const auto pieces = [&](std::uint64_t first) {
      const std::uint64_t last = std::min(first + count, n);
      return std::pair{cut.of(all, first, last), cut.of(all, 0, first + count - last)};
    };
    const auto [out, out_rest] = pieces(me.rank());
    const auto [in, in_rest] = pieces(from);
    const bool out_wraps = me.rank() + count > n, in_wraps = from + count > n;
    std::vector<member::sending> rest;
    member::sending first = me.start_send(to, out);
    if (out_wraps) rest.push_back(me.start_send(to, out_rest));
    me.receive(from, in);
    if (in_wraps) me.receive(from, in_rest);
    me.finish(first);
    for (member::sending& s : rest) me.finish(s);
  }
}

void broadcast(member& me, byte_room values, unsigned root) {
  const tree t(me.rank(), me.size(), root);
  // Two or three members gain nothing from pieces.
  if (values.size() < broadcast_cut_bytes || me.size() < 4) {
    if (t.parent()) me.receive(*t.parent(), values);
    std::vector<member::sending> sends;
    for (std::size_t i = t.children().size(); i-- > 0;)
      sends.push_back(me.start_send(t.children()[i].head, values));
    for (member::sending& s : sends) me.finish(s);
    return;
  }
  const blocks cut{(values.size() + me.size() - 1) / me.size(), values.size()};
  deal(me, t, cut, cut.of(values, t.mine().first, t.mine().last));
  exchange_blocks(me, cut, values);
}

void scatter(member& me, byte_view all, byte_room values, unsigned root) {
  const tree t(me.rank(), me.size(), root);
  const blocks cut{values.size(), values.size() * me.size()};
  if (me.rank() == root) {
    me.require(all.size() == cut.total, "scatter(): the root's range is not N times the others'");
    std::vector<member::sending> sends;
    for (std::size_t i = t.children().size(); i-- > 0;) {
      const subtree& child = t.children()[i];
      sends.push_back(me.start_send(child.head, cut.of(all, child.first, child.last)));
    }
    copy_bytes(cut.of(all, root, root + 1), values);
    for (member::sending& s : sends) me.finish(s);
  } else if (t.mine().size() == 1) {
    deal(me, t, cut, values);
  } else {
    const scratch mine(values.size() * t.mine().size());
    deal(me, t, cut, mine.all());
    copy_bytes(mine.all().first(values.size()), values);
  }
}

void gather(member& me, byte_view values, byte_room all, unsigned root) {
  const tree t(me.rank(), me.size(), root);
  const blocks cut{values.size(), values.size() * me.size()};
  const bool is_root = me.rank() == root;
  if (is_root)
    me.require(all.size() == cut.total, "gather(): the root's range is not N times the others'");
  if (!is_root && t.mine().size() == 1) return me.send(*t.parent(), values);
  const scratch collected(is_root ? 0 : values.size() * t.mine().size());
  const byte_room mine = is_root ? all : collected.all();
  const std::size_t start = cut.begin(t.mine().first);
  copy_bytes(values, mine.subspan(cut.begin(me.rank()) - start, values.size()));
  for (const subtree& child : t.children()) {
    const std::size_t at = cut.begin(child.first);
    me.receive(child.head, mine.subspan(at - start, cut.begin(child.last) - at));
  }
  if (!is_root) me.send(*t.parent(), mine);
}

void all_gather(member& me, byte_view values, byte_room all) {
  const blocks cut{values.size(), values.size() * me.size()};
  me.require(all.size() == cut.total, "all_gather(): `all` is not N times as large as `values`");
  copy_bytes(values, cut.of(all, me.rank(), me.rank() + 1));
  exchange_blocks(me, cut, all);
}

// J. Bruck et al., 1997: block i is for the member i ranks on, and travels 2^k of them in round k
// if i has that bit.
void all_to_all_packed(member& me, byte_view out, byte_room in, std::size_t block) {
  const unsigned n = me.size();
  const auto at = [block](byte_room all, std::size_t i) { return all.subspan(i * block, block); };
  const scratch turned(out.size()), packed(out.size()), arrived(out.size());
  for (unsigned i = 0; i < n; ++i)
    copy_bytes(out.subspan((me.rank() + std::size_t{i}) % n * block, block), at(turned.all(), i));
  for (std::uint64_t far = 1; far < n; far *= 2) {
    std::size_t count = 0;
    for (unsigned i = 0; i < n; ++i) {
      if ((i & far) != 0) copy_bytes(at(turned.all(), i), at(packed.all(), count++));
    }
    me.exchange(static_cast<unsigned>((me.rank() + far) % n), packed.all().first(count * block),
                static_cast<unsigned>((me.rank() + n - far) % n),
                arrived.all().first(count * block));
    count = 0;
    for (unsigned i = 0; i < n; ++i) {
      if ((i & far) != 0) copy_bytes(at(arrived.all(), count++), at(turned.all(), i));
    }
  }
  for (unsigned i = 0; i < n; ++i)
    copy_bytes(at(turned.all(), i), at(in, (me.rank() + std::size_t{n} - i) % n));
}

void all_to_all(member& me, byte_view out, byte_room in) {
  const unsigned n = me.size();
  me.require(out.size() == in.size(), "all_to_all(): `out` and `in` have different sizes");
  me.require(out.size() % n == 0, "all_to_all(): `out` is not one block for each member");
  const std::size_t block = out.size() / n;
  if (n >= 4 && block <= all_to_all_packed_bytes_max) return all_to_all_packed(me, out, in, block);
  copy_bytes(out.subspan(me.rank() * block, block), in.subspan(me.rank() * block, block));
  for_each_other(me, [&](unsigned to, unsigned from) {
    me.exchange(to, out.subspan(to * block, block), from, in.subspan(from * block, block));
  });
}

}  // namespace strata::messages
