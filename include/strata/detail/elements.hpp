// SPDX-License-Identifier: Apache-2.0
// Values side by side in memory, and their bytes: what messages and groups send and receive.
#pragma once
#include <concepts>
#include <cstddef>
#include <memory>
#include <ranges>
#include <span>
#include <type_traits>

#include "strata/detail/address.hpp"

namespace strata::detail {

// std::vector, std::array, std::span, plain arrays, std::string.
template <class R>
concept value_range = std::ranges::contiguous_range<R> && std::ranges::sized_range<R> &&
    std::is_trivially_copyable_v<std::ranges::range_value_t<R>>;
template <class R>
concept changeable_range =
    value_range<R> && !std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<R>>>;
template <class A, class B>
concept same_values = std::same_as<std::ranges::range_value_t<A>, std::ranges::range_value_t<B>>;

// That are still there after the call which they are given to: a container of the caller's, or what
// a view refers to.
template <class R>
concept lasting_range = value_range<R> && std::ranges::borrowed_range<R>;
template <class R>
concept passing_range = value_range<R> && !std::ranges::borrowed_range<R>;
template <class R>
concept lasting_room = changeable_range<R> && std::ranges::borrowed_range<R>;

// What holds all that it is in itself: a number, a structure, an array; and what does not.
template <class T>
concept whole_value = std::is_trivially_copyable_v<T> && !view_of_memory<T>;
template <class R>
concept elements_elsewhere = value_range<R> && !whole_value<R>;

template <value_range R>
std::span<const std::byte> content_of(const R& values) noexcept {
  refuse_addresses<std::ranges::range_value_t<R>>();
  return std::as_bytes(std::span(std::ranges::data(values), std::ranges::size(values)));
}
template <changeable_range R>
std::span<std::byte> room_of(R& values) noexcept {
  refuse_addresses<std::ranges::range_value_t<R>>();
  return std::as_writable_bytes(std::span(std::ranges::data(values), std::ranges::size(values)));
}

// One value as bytes, whatever its type means by &.
template <class T>
std::span<const std::byte> content_of_one(const T& value) noexcept {
  return std::as_bytes(std::span(std::addressof(value), 1));
}
template <class T>
std::span<std::byte> room_of_one(T& value) noexcept {
  return std::as_writable_bytes(std::span(std::addressof(value), 1));
}

}  // namespace strata::detail
