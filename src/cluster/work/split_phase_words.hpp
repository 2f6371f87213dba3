// SPDX-License-Identifier: Apache-2.0
// What messages of split-phase operations begin with, and how large they are.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "cluster/words/kinds.hpp"
#include "net/wire.hpp"

namespace strata::cluster {

inline constexpr std::size_t head_bytes_max = 64;
inline constexpr std::size_t piece_bytes_max = part_bytes_max - head_bytes_max;
// Of something large: what is sent before somebody looks whether the way is congested, and what is
// asked for at once.
inline constexpr std::size_t at_once_max = 8 * piece_bytes_max;

struct put_head {
  std::uint64_t to, slot;
};
struct drop_in_head {
  std::uint64_t box, offset, bytes;
};
// What each piece of the answer to a request is, beside its data.
inline constexpr std::size_t answer_head_bytes = sizeof(net::header) + sizeof(put_head);

template <class T>
std::span<const std::byte> bytes_of(const T& head) {
  static_assert(sizeof(T) <= head_bytes_max && std::has_unique_object_representations_v<T>);
  return std::as_bytes(std::span(&head, 1));
}

inline std::span<const std::byte> bytes_at(const void* data, std::size_t n) {
  return {static_cast<const std::byte*>(data), n};
}

}  // namespace strata::cluster
