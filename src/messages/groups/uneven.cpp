// SPDX-License-Identifier: Apache-2.0
// Operations in which each has another size. Nobody knows those of others, so the sizes travel
// before the bytes.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "messages/groups/blocks.hpp"
#include "messages/groups/collectives.hpp"
#include "messages/groups/scratch.hpp"
#include "messages/groups/tree.hpp"

namespace strata::messages {
namespace {

using sizes_view = std::span<const std::uint64_t>;

std::uint64_t size_of(byte_view part) noexcept { return part.size(); }

// Of what members say that they have.
std::size_t sum_of(member& me, sizes_view sizes) {
  constexpr std::uint64_t bytes_max = PTRDIFF_MAX;
  std::uint64_t sum = 0;
  for (const std::uint64_t one : sizes) {
    me.require(one <= bytes_max - sum, "a member has more bytes than there can be");
    sum += one;
  }
  return sum;
}

blocks blocks_of(member& me, sizes_view sizes) {
  blocks cut{.each = 0, .total = sum_of(me, sizes), .begins = {0}};
  cut.begins.reserve(sizes.size() + 1);
  for (const std::uint64_t one : sizes) cut.begins.push_back(cut.begins.back() + one);
  return cut;
}

// Bytes of several members, by rank.
void append_parts(std::vector<byte_string>& parts, byte_view bytes, sizes_view sizes) {
  for (const std::uint64_t size : sizes) {
    const byte_view one = bytes.first(size);
    parts.emplace_back(one.begin(), one.end());
    bytes = bytes.subspan(size);
  }
}

}  // namespace

std::vector<byte_string> gather_any(member& me, byte_view values, unsigned root) {
  const tree t(me.rank(), me.size(), root);
  const subtree& mine = t.mine();
  // By rank from mine.first on; a member's own is not copied before it must be.
  std::vector<std::uint64_t> sizes(mine.size());
  std::vector<byte_string> parts;  // as they come: one for each child
  sizes[me.rank() - mine.first] = values.size();
  for (const subtree& child : t.children()) {
    const auto theirs = std::span(sizes).subspan(child.first - mine.first, child.size());
    me.receive(child.head, std::as_writable_bytes(theirs));
    parts.emplace_back(sum_of(me, theirs));
    if (!parts.back().empty()) me.receive(child.head, parts.back());
  }
  // What this member has and its children have, in the order of the ranks.
  struct piece {
    unsigned first, last;
    byte_view bytes;
  };
  std::vector<piece> pieces{{me.rank(), me.rank() + 1, values}};
  for (std::size_t i = 0; i < parts.size(); ++i)
    pieces.push_back({t.children()[i].first, t.children()[i].last, parts[i]});
  std::ranges::sort(pieces, {}, &piece::first);
  if (t.parent()) {
    byte_string joined;
    byte_view all = values;
    if (!parts.empty()) {
      joined.reserve(sum_of(me, sizes));
      for (const piece& p : pieces) joined.insert(joined.end(), p.bytes.begin(), p.bytes.end());
      all = joined;
    }
    me.send(*t.parent(), bytes_of(sizes));
    if (!all.empty()) me.send(*t.parent(), all);
    return {};
  }
  std::vector<byte_string> result;
  for (const piece& p : pieces)
    append_parts(result, p.bytes, std::span(sizes).subspan(p.first, p.last - p.first));
  return result;
}

std::vector<byte_string> all_gather_any(member& me, byte_view values) {
  std::vector<std::uint64_t> sizes(me.size());
  const std::uint64_t size = values.size();
  all_gather(me, bytes_of(size), std::as_writable_bytes(std::span(sizes)));
  const blocks cut = blocks_of(me, sizes);
  const scratch all(cut.total);
  copy_bytes(values, cut.of(all.all(), me.rank(), me.rank() + 1));
  exchange_blocks(me, cut, all.all());
  std::vector<byte_string> result;
  append_parts(result, all.all(), sizes);
  return result;
}

byte_string scatter_any(member& me, std::span<const byte_view> parts, unsigned root) {
  const tree t(me.rank(), me.size(), root);
  const subtree& mine = t.mine();
  const bool is_root = me.rank() == root;
  std::vector<std::uint64_t> sizes(mine.size());  // by rank from mine.first on
  if (is_root) {
    me.require(parts.size() == me.size(), "scatter_any(): the root has not one part for each");
    std::ranges::transform(parts, sizes.begin(), size_of);
  } else {
    me.receive(*t.parent(), std::as_writable_bytes(std::span(sizes)));
  }
  const blocks cut = blocks_of(me, sizes);
  byte_string come(is_root ? 0 : cut.total);
  if (!come.empty()) me.receive(*t.parent(), come);
  const auto part_of = [&](unsigned first, unsigned last) {
    return cut.of(byte_view(come), first - mine.first, last - mine.first);
  };
  std::vector<byte_string> joined;  // at the root: what one of its children gets
  joined.reserve(t.children().size());
  const auto bytes_for = [&](const subtree& child) {
    if (!is_root) return part_of(child.first, child.last);
    if (child.size() == 1) return parts[child.first];
    byte_string& all = joined.emplace_back();
    all.reserve(cut.begin(child.last) - cut.begin(child.first));
    for (const byte_view one : parts.subspan(child.first, child.size()))
      all.insert(all.end(), one.begin(), one.end());
    return byte_view(all);
  };
  std::vector<member::sending> sends;
  // The largest first: it has the longest way before it.
  for (std::size_t i = t.children().size(); i-- > 0;) {
    const subtree& child = t.children()[i];
    const auto theirs = std::span(sizes).subspan(child.first - mine.first, child.size());
    sends.push_back(me.start_send(child.head, std::as_bytes(theirs)));
    const byte_view bytes = bytes_for(child);
    if (!bytes.empty()) sends.push_back(me.start_send(child.head, bytes));
  }
  if (!is_root && mine.size() == 1) return come;  // all of it is this member's
  const byte_view own = is_root ? parts[root] : part_of(me.rank(), me.rank() + 1);
  byte_string result(own.begin(), own.end());
  for (member::sending& s : sends) me.finish(s);
  return result;
}

namespace {

// Parts of up to `largest` bytes, each in a block with its size before it.
std::vector<byte_string> all_to_all_in_blocks(member& me, std::span<const byte_view> parts,
                                              std::size_t largest) {
  using part_size = std::uint16_t;
  static_assert(all_to_all_packed_bytes_max <= UINT16_MAX);
  const std::size_t block = sizeof(part_size) + largest;
  const scratch out(block * parts.size()), in(block * parts.size());
  std::memset(out.data(), 0, out.all().size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto size = static_cast<part_size>(parts[i].size());
    std::memcpy(out.data() + i * block, &size, sizeof size);
    copy_bytes(parts[i], out.all().subspan(i * block + sizeof size));
  }
  all_to_all_packed(me, out.all(), in.all(), block);
  std::vector<byte_string> result;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    part_size size = 0;
    std::memcpy(&size, in.data() + i * block, sizeof size);
    me.require(size <= largest, "all_to_all_any(): a member has sent more than it has said");
    const byte_view one = in.all().subspan(i * block + sizeof size, size);
    result.emplace_back(one.begin(), one.end());
  }
  return result;
}

}  // namespace

std::vector<byte_string> all_to_all_any(member& me, std::span<const byte_view> parts) {
  const unsigned n = me.size();
  me.require(parts.size() == n, "all_to_all_any(): there is not one part for each member");
  std::vector<std::uint64_t> out(n), in(n);
  std::ranges::transform(parts, out.begin(), size_of);
  if (n >= 4) {  // fewer gain nothing from packing
    std::uint64_t largest = *std::ranges::max_element(out);
    auto larger = [](std::uint64_t a, std::uint64_t b) { return std::max(a, b); };
    all_reduce(me, std::as_writable_bytes(std::span(&largest, 1)),
               strata::detail::combination_of<std::uint64_t>(larger));
    if (largest <= all_to_all_packed_bytes_max) return all_to_all_in_blocks(me, parts, largest);
  }
  all_to_all(me, bytes_of(out), std::as_writable_bytes(std::span(in)));
  (void)sum_of(me, in);
  std::vector<byte_string> result;
  for (const std::uint64_t size : in) result.emplace_back(size);
  copy_bytes(parts[me.rank()], result[me.rank()]);
  for_each_other(me, [&](unsigned to, unsigned from) {
    if (out[to] != 0 && in[from] != 0) {
      me.exchange(to, parts[to], from, result[from]);
    } else if (out[to] != 0) {
      me.send(to, parts[to]);
    } else if (in[from] != 0) {
      me.receive(from, result[from]);
    }
  });
  return result;
}

}  // namespace strata::messages
