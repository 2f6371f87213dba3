// SPDX-License-Identifier: Apache-2.0
// Operations that combine values, always in the order of the ranks.
#include <bit>
#include <cstring>
#include <utility>
#include <vector>

#include "messages/groups/blocks.hpp"
#include "messages/groups/collectives.hpp"
#include "messages/groups/scratch.hpp"
#include "messages/groups/tree.hpp"

namespace strata::messages {

void reduce(member& me, byte_view values, byte_room result, unsigned root,
            const strata::detail::combination& op) {
  const tree t(me.rank(), me.size(), root);
  const bool is_root = me.rank() == root;
  if (is_root)
    me.require(result.size() == values.size(),
               "reduce(): the root's result is not as large as its values");
  if (!is_root && t.children().empty()) return me.send(*t.parent(), values);
  const std::size_t size = values.size();
  const scratch sum(is_root ? 0 : size, op.alignment), theirs(size, op.alignment);
  const byte_room mine = is_root ? result : sum.all();
  if (size != 0 && mine.data() != values.data()) std::memmove(mine.data(), values.data(), size);
  for (const subtree& child : t.children()) {
    me.receive(child.head, theirs.all());
    const bool left = child.first < me.rank();
    me.combine(op, left ? theirs.data() : mine.data(), left ? mine.data() : theirs.data(),
               mine.data(), size);
  }
  if (!is_root) me.send(*t.parent(), mine);
}

namespace {

// A power of two of members that remain once each of the first pairs has made one of two. They are
// numbered anew, in the order of the ranks.
struct halving {
  explicit halving(unsigned size) : remaining(std::bit_floor(size)), pairs(size - remaining) {}
  unsigned remaining, pairs;
  [[nodiscard]] unsigned number_of(unsigned rank) const noexcept {
    return rank < 2 * pairs ? rank / 2 : rank - pairs;
  }
  [[nodiscard]] unsigned rank_of(unsigned number) const noexcept {
    return number < pairs ? 2 * number + 1 : number + pairs;
  }
  // Which of the pieces exchange_halves() leaves with that number: its bits the other way round. So
  // that is also the number with which it leaves such a piece.
  [[nodiscard]] unsigned piece_of(unsigned number) const noexcept {
    unsigned piece = 0;
    for (unsigned bit = 1; bit < remaining; bit *= 2)
      piece = 2 * piece + ((number & bit) != 0 ? 1 : 0);
    return piece;
  }
};

// Everybody exchanges all of it with the member whose number differs in one bit, bit by bit.
void exchange_whole(member& me, const halving& h, byte_room mine, byte_room theirs,
                    const strata::detail::combination& op) {
  const unsigned number = h.number_of(me.rank());
  for (unsigned bit = 1; bit < h.remaining; bit *= 2) {
    const unsigned other = h.rank_of(number ^ bit);
    me.exchange(other, mine, other, theirs);
    const bool left = (number & bit) != 0;
    me.combine(op, left ? theirs.data() : mine.data(), left ? mine.data() : theirs.data(),
               mine.data(), mine.size());
  }
}

// A round of halving: what a member keeps of the pieces that it still has, and what the other one.
struct halving_step {
  unsigned other, mine_first, mine_last, other_first, other_last;
};

// The same with halves of what each still has, until everybody has one piece of the result. `cut`:
// as many pieces as numbers. Returns the steps.
std::vector<halving_step> exchange_halves(member& me, const halving& h, const blocks& cut,
                                          byte_room mine, byte_room theirs,
                                          const strata::detail::combination& op) {
  const unsigned number = h.number_of(me.rank());
  std::vector<halving_step> steps;
  unsigned first = 0, last = h.remaining;
  for (unsigned bit = 1; bit < h.remaining; bit *= 2) {
    const unsigned middle = first + (last - first) / 2;
    const bool upper = (number & bit) != 0;
    const unsigned other = h.rank_of(number ^ bit);
    const halving_step s = upper ? halving_step{other, middle, last, first, middle}
                                 : halving_step{other, first, middle, middle, last};
    const byte_room kept = cut.of(mine, s.mine_first, s.mine_last);
    const byte_room come = cut.of(theirs, s.mine_first, s.mine_last);
    me.exchange(other, cut.of(mine, s.other_first, s.other_last), other, come);
    me.combine(op, upper ? come.data() : kept.data(), upper ? kept.data() : come.data(),
               kept.data(), kept.size());
    steps.push_back(s);
    first = s.mine_first;
    last = s.mine_last;
  }
  return steps;
}

// Halves, and then back, with twice as much each time (Rabenseifner's).
void exchange_pieces(member& me, const halving& h, byte_room mine, byte_room theirs,
                     const strata::detail::combination& op) {
  const std::uint64_t elements = mine.size() / op.element_bytes;
  blocks cut{.each = 0, .total = mine.size(), .begins = {}};
  cut.begins.reserve(std::size_t{h.remaining} + 1);
  for (std::uint64_t i = 0; i <= h.remaining; ++i)
    cut.begins.push_back(elements * i / h.remaining * op.element_bytes);
  std::vector<halving_step> steps = exchange_halves(me, h, cut, mine, theirs, op);
  for (; !steps.empty(); steps.pop_back()) {
    const halving_step& s = steps.back();
    me.exchange(s.other, cut.of(mine, s.mine_first, s.mine_last), s.other,
                cut.of(mine, s.other_first, s.other_last));
  }
}

}  // namespace

void all_reduce(member& me, byte_room values, const strata::detail::combination& op) {
  if (me.size() == 1) return;
  const halving h(me.size());
  const bool in_pair = me.rank() < 2 * h.pairs;
  if (in_pair && me.rank() % 2 == 0) {
    me.send(me.rank() + 1, values);
    return me.receive(me.rank() + 1, values);
  }
  const scratch theirs(values.size(), op.alignment);
  if (in_pair) {
    me.receive(me.rank() - 1, theirs.all());
    me.combine(op, theirs.data(), values.data(), values.data(), values.size());
  }
  if (values.size() >= all_reduce_cut_bytes && h.remaining >= 4 &&
      values.size() / op.element_bytes >= h.remaining) {
    exchange_pieces(me, h, values, theirs.all(), op);
  } else {
    exchange_whole(me, h, values, theirs.all(), op);
  }
  if (in_pair) me.send(me.rank() - 1, values);
}

// Each member's blocks are the piece that halving leaves with it, a pair's the two of both. Halving
// alone keeps the order of the ranks, and so needs them in that order.
void reduce_scatter(member& me, byte_view all, byte_room values,
                    const strata::detail::combination& op) {
  const blocks of_rank{values.size(), values.size() * me.size()};
  me.require(all.size() == of_rank.total,
             "reduce_scatter(): `all` is not N times as large as `values`");
  if (me.size() == 1) return copy_bytes(all, values);
  const halving h(me.size());
  const bool in_pair = me.rank() < 2 * h.pairs;
  if (in_pair && me.rank() % 2 == 0) {
    me.send(me.rank() + 1, all);
    return me.receive(me.rank() + 1, values);
  }
  const scratch mine(all.size(), op.alignment), theirs(all.size(), op.alignment);
  if (in_pair) me.receive(me.rank() - 1, theirs.all());
  blocks cut{.each = 0, .total = all.size(), .begins = {0}};
  cut.begins.reserve(std::size_t{h.remaining} + 1);
  for (unsigned piece = 0; piece < h.remaining; ++piece) {
    const unsigned number = h.piece_of(piece), last = h.rank_of(number);
    const unsigned first = number < h.pairs ? last - 1 : last;
    const std::size_t from = of_rank.begin(first), bytes = of_rank.begin(last + 1) - from;
    const byte_room here = mine.all().subspan(cut.begins.back(), bytes);
    if (in_pair) {
      me.combine(op, theirs.data() + from, all.data() + from, here.data(), bytes);
    } else {
      copy_bytes(all.subspan(from, bytes), here);
    }
    cut.begins.push_back(cut.begins.back() + bytes);
  }
  (void)exchange_halves(me, h, cut, mine.all(), theirs.all(), op);
  const unsigned piece = h.piece_of(h.number_of(me.rank()));
  const byte_view result = cut.of(byte_view(mine.all()), piece, piece + 1);
  if (in_pair) me.send(me.rank() - 1, result.first(values.size()));
  copy_bytes(result.last(values.size()), values);
}

namespace {

// After round k a member has combined what the 2^k members up to itself have: W. D. Hillis, G. L.
// Steele, 1986, doi:10.1145/7902.7903. before: empty, or room for what those before it have.
void combine_prefixes(member& me, byte_room values, byte_room before,
                      const strata::detail::combination& op) {
  const scratch theirs(values.size(), op.alignment);
  bool any_before = false;
  for (std::uint64_t far = 1; far < me.size(); far *= 2) {
    const bool sends = me.rank() + far < me.size(), receives = me.rank() >= far;
    const auto to = static_cast<unsigned>(me.rank() + far);
    const auto from = static_cast<unsigned>(me.rank() - far);
    if (sends && receives) {
      me.exchange(to, values, from, theirs.all());
    } else if (sends) {
      me.send(to, values);
    } else if (receives) {
      me.receive(from, theirs.all());
    }
    if (!receives) continue;
    me.combine(op, theirs.data(), values.data(), values.data(), values.size());
    if (before.empty()) continue;
    if (any_before) {
      me.combine(op, theirs.data(), before.data(), before.data(), before.size());
    } else {
      std::memcpy(before.data(), theirs.data(), before.size());
    }
    any_before = true;
  }
}

}  // namespace

void scan(member& me, byte_room values, const strata::detail::combination& op) {
  combine_prefixes(me, values, {}, op);
}

void exclusive_scan(member& me, byte_view values, byte_room result,
                    const strata::detail::combination& op) {
  me.require(result.size() == values.size(),
             "exclusive_scan(): `result` is not as large as `values`");
  const scratch mine(values.size(), op.alignment);
  copy_bytes(values, mine.all());
  combine_prefixes(me, mine.all(), result, op);
}

}  // namespace strata::messages
