// SPDX-License-Identifier: Apache-2.0
// A function of two values of the program as one of arrays of bytes: what reductions of a group are
// made of.
#pragma once
#include <concepts>
#include <cstddef>
#include <memory>

#include "strata/detail/address.hpp"

namespace strata::detail {

// An operation of the program on arrays of its type.
struct combination {
  std::size_t element_bytes, alignment;
  void* function;
  // into[i] = function(left[i], right[i]); `into` may be `left` or `right`.
  void (*apply)(void* function, const std::byte* left, const std::byte* right, std::byte* into,
                std::size_t elements);
};

template <class Op, class T>
concept combines = requires(Op& op, const T& x) {
  { op(x, x) } -> std::convertible_to<T>;
};

template <class T, class Op>
combination combination_of(Op& op) noexcept {
  refuse_addresses<T>();
  return {sizeof(T), alignof(T), std::addressof(op),
          [](void* function, const std::byte* left, const std::byte* right, std::byte* into,
             std::size_t elements) {
            const auto* const l = reinterpret_cast<const T*>(left);
            const auto* const r = reinterpret_cast<const T*>(right);
            auto* const result = reinterpret_cast<T*>(into);
            for (std::size_t i = 0; i < elements; ++i)
              result[i] = (*static_cast<Op*>(function))(l[i], r[i]);
          }};
}

}  // namespace strata::detail
