// SPDX-License-Identifier: Apache-2.0
// Values as members of a group give and get them: by themselves, or of each member another number.
#pragma once
#include <concepts>
#include <cstddef>
#include <cstring>
#include <memory>
#include <ranges>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "strata/detail/elements.hpp"

namespace strata::detail {

template <class T>
concept single_value = std::is_trivially_copyable_v<T> && !std::ranges::range<T>;
// What is not given as bytes anyway.
template <class R>
concept range_of_no_bytes =
    value_range<R> && !std::same_as<std::ranges::range_value_t<R>, std::byte>;
// Of each member another number of values: a range of ranges.
template <class P>
concept range_of_parts = std::ranges::forward_range<const P> &&
    std::is_lvalue_reference_v<std::ranges::range_reference_t<const P>> &&
    value_range<std::ranges::range_value_t<P>>;
template <class P>
using part_value = std::ranges::range_value_t<std::ranges::range_value_t<P>>;

template <range_of_parts P>
std::vector<std::span<const std::byte>> contents_of(const P& parts) {
  std::vector<std::span<const std::byte>> all;
  for (const auto& one : parts) all.push_back(content_of(one));
  return all;
}

// What has come in bytes, of which there are a whole number of elements.
template <class T>
std::vector<T> elements_of(std::vector<std::byte> bytes) {
  if constexpr (std::same_as<T, std::byte>) {
    return bytes;
  } else {
    static_assert(std::is_default_constructible_v<T> && !std::same_as<T, bool>,
                  "values of any number are returned in a std::vector<T>: T needs a default "
                  "constructor and is not bool");
    std::vector<T> elements(bytes.size() / sizeof(T));
    if (!bytes.empty()) std::memcpy(elements.data(), bytes.data(), bytes.size());
    return elements;
  }
}
// So many values, of which fill(bytes) writes what they are; `value` until then.
template <class T, class Fill>
std::vector<T> vector_by(std::size_t n, const T& value, Fill&& fill) {
  if constexpr (std::same_as<T, bool>) {
    // A std::vector<bool> has them as bits.
    const auto all = std::make_unique<bool[]>(n);
    fill(std::as_writable_bytes(std::span(all.get(), n)));
    return std::vector<bool>(all.get(), all.get() + n);
  } else {
    std::vector<T> all(n, value);
    fill(std::as_writable_bytes(std::span(all)));
    return all;
  }
}
template <class T>
std::vector<std::vector<T>> elements_of_all(std::vector<std::vector<std::byte>> all) {
  if constexpr (std::same_as<T, std::byte>) {
    return all;
  } else {
    std::vector<std::vector<T>> elements;
    elements.reserve(all.size());
    for (std::vector<std::byte>& one : all) elements.push_back(elements_of<T>(std::move(one)));
    return elements;
  }
}

}  // namespace strata::detail
