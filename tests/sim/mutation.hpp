// SPDX-License-Identifier: Apache-2.0
// What becomes of a message when anything in it may change but what the receiver has to trust: the
// addresses, and how much lies there (docs/architecture.md).
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "base/prng.hpp"
#include "cluster/words/kinds.hpp"
#include "strata/detail/remote.hpp"

namespace strata::test {

using cluster::kind;
using payload_bytes = std::vector<std::byte>;

template <class T>
T value_at(std::span<const std::byte> bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}
template <class T>
void set_value(std::span<std::byte> bytes, std::size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

// Where addresses are; each is 48 bits of one, and 16 of a node's number.
inline std::vector<std::size_t> addresses_in(kind k) {
  switch (k) {
    case kind::signal:
    case kind::increment:
    case kind::drop_in:
      return {0};
    case kind::put:
    case kind::got:
      return {0, 8};
    case kind::get:
      return {0, 8, 16};
    default:
      return {};
  }
}

// The tokens in a message: what they are made of is the program's.
inline void keep_tokens(std::span<const std::byte> original, std::span<std::byte> changed,
                        std::size_t at) {
  using detail::code_identity;
  while (at + sizeof(code_identity) <= changed.size()) {
    const bool was_there = at + sizeof(code_identity) <= original.size();
    const auto then = was_there ? value_at<code_identity>(original, at) : code_identity{};
    const auto* type = detail::travelling_code::find(value_at<code_identity>(changed, at));
    if (type == nullptr) return;
    // No other code than what was there: it might trust what it finds.
    if (value_at<code_identity>(changed, at) != then)
      return set_value(changed, at, ~code_identity{0});
    at += sizeof(code_identity);
    const std::size_t there = std::min({std::size_t{type->argument_bytes}, changed.size() - at,
                                        original.size() - std::min(original.size(), at)});
    // But a call's home begins with the address; the node that it is of comes after that.
    std::vector<std::byte> home(changed.begin() + static_cast<std::ptrdiff_t>(at),
                                changed.begin() + static_cast<std::ptrdiff_t>(at + there));
    std::memcpy(changed.data() + at, original.data() + at, there);
    if (type->accept != nullptr && there >= 8) std::memcpy(changed.data() + at + 6, &home[6], 2);
    at += type->argument_bytes;
  }
}

// What is in a message to somebody further on, and from where.
struct inner_message {
  kind k;
  std::size_t kind_at, begin;
};
inline std::optional<inner_message> inner_of(kind k, std::span<const std::byte> outer) {
  // detours.cpp: source, kind, whose turn it is, how many follow.
  constexpr std::size_t detour_bytes = 4 * sizeof(std::uint16_t);
  const bool detours = k == kind::detour, forwards = k == kind::forward;
  const std::size_t kind_at = detours ? 2 : offsetof(cluster::forwarded_head, kind);
  std::size_t begin = detours ? detour_bytes : sizeof(cluster::forwarded_head);
  if ((!detours && !forwards) || outer.size() < begin) return std::nullopt;
  if (detours) begin += value_at<std::uint16_t>(outer, 6) * sizeof(net::node_id);
  return inner_message{static_cast<kind>(value_at<net::message_kind>(outer, kind_at)), kind_at,
                       std::min(begin, outer.size())};
}

inline void keep_what_is_trusted(kind k, std::span<const std::byte> original,
                                 payload_bytes& changed);

// An inner message that names places is of the same kind, or of none that there is.
inline void keep_inner(kind k, std::span<const std::byte> original, payload_bytes& changed) {
  const auto now = inner_of(k, changed);
  if (!now) return;
  const auto then = inner_of(k, original);
  payload_bytes inner(changed.begin() + static_cast<std::ptrdiff_t>(now->begin), changed.end());
  if (then && then->k == now->k && then->begin == now->begin) {
    keep_what_is_trusted(now->k, original.subspan(then->begin), inner);
    changed.resize(now->begin);
    changed.insert(changed.end(), inner.begin(), inner.end());
  } else if (!addresses_in(now->k).empty() || now->k == kind::invoke || now->k == kind::tokens) {
    set_value(std::span(changed), now->kind_at, net::message_kind{1000});
  } else {
    keep_inner(now->k, {}, inner);
    std::copy(inner.begin(), inner.end(),
              changed.begin() + static_cast<std::ptrdiff_t>(now->begin));
  }
}

// In `changed`, what has to be as in `original`.
inline void keep_what_is_trusted(kind k, std::span<const std::byte> original,
                                 payload_bytes& changed) {
  constexpr std::uint64_t address = (std::uint64_t{1} << 48) - 1;
  for (const std::size_t at : addresses_in(k)) {
    if (at + 8 > changed.size() || at + 8 > original.size()) continue;
    const auto now = value_at<std::uint64_t>(changed, at);
    set_value(std::span(changed), at,
              (now & ~address) | (value_at<std::uint64_t>(original, at) & address));
  }
  // No more is written, or read, than there is room.
  if ((k == kind::put || k == kind::got) && changed.size() > original.size())
    changed.resize(original.size());
  if (k == kind::get && changed.size() >= 32 && original.size() >= 32) {
    const auto bytes = value_at<std::uint64_t>(original, 24);
    const auto wanted = value_at<std::uint64_t>(changed, 24);
    if (wanted > bytes && wanted <= 8 * cluster::part_bytes_max)
      set_value(std::span(changed), 24, bytes);
  }
  keep_inner(k, original, changed);
  if (k == kind::invoke) keep_tokens(original, changed, 0);
  if (k == kind::tokens) keep_tokens(original, changed, 4);
}

// Some of its bytes, its numbers and its length are others.
inline payload_bytes mutated(kind k, std::span<const std::byte> original, prng& random) {
  payload_bytes m(original.begin(), original.end());
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random.below(n)); };
  const auto any_number = [&](std::uint64_t before) -> std::uint64_t {
    static constexpr std::array<std::uint64_t, 16> telling{
        0,         1,         2,       3,        4,          5,          6,
        0x7FFF,    0xFFFF,    0x10000, 1U << 20, 0x7FFFFFFF, 0xFFFFFFFF, std::uint64_t{1} << 47,
        INT64_MAX, UINT64_MAX};
    switch (random.below(4)) {
      case 0:
        return before + 1;
      case 1:
        return before - 1;
      case 2:
        return random.next();
      default:
        return telling[below(telling.size())];
    }
  };
  for (auto left = 1 + random.below(3); left > 0; --left) {
    switch (random.below(7)) {
      case 0:
        m.resize(below(m.size() + 1));
        break;
      case 1:
        for (auto more = 1 + below(40); more > 0; --more)
          m.push_back(static_cast<std::byte>(random.next()));
        break;
      case 2:
        if (!m.empty()) m[below(m.size())] ^= std::byte{1} << below(8);
        break;
      case 3:
        if (!m.empty()) m[below(m.size())] = static_cast<std::byte>(random.next());
        break;
      // Heads are short, and their numbers begin where their size says.
      case 4:
        if (m.size() >= 8) {
          const std::size_t at = below(std::min<std::size_t>(m.size() / 8, 12)) * 8;
          set_value(std::span(m), at, any_number(value_at<std::uint64_t>(m, at)));
        }
        break;
      case 5:
        if (m.size() >= 4) {
          const std::size_t at = below(std::min<std::size_t>(m.size() / 4, 24)) * 4;
          set_value(std::span(m), at,
                    static_cast<std::uint32_t>(any_number(value_at<std::uint32_t>(m, at))));
        }
        break;
      default:
        if (m.size() >= 2) {
          const std::size_t at = below(std::min<std::size_t>(m.size() / 2, 48)) * 2;
          set_value(std::span(m), at,
                    static_cast<std::uint16_t>(any_number(value_at<std::uint16_t>(m, at))));
        }
        break;
    }
  }
  keep_what_is_trusted(k, original, m);
  return m;
}

}  // namespace strata::test
