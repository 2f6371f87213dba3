// SPDX-License-Identifier: Apache-2.0
// Addresses, which mean nothing on another node. Most types that hold one are trivially copyable,
// so that alone does not say whether a value can travel.
#pragma once
#include <array>
#include <concepts>
#include <cstddef>
#include <functional>
#include <initializer_list>
#include <optional>
#include <ranges>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

namespace strata::detail {

// std::span, std::string_view, and whatever else refers to elements in memory that it does not own.
template <class T>
concept view_of_memory = std::ranges::contiguous_range<T> && std::ranges::borrowed_range<T>;

template <class T>
struct is_memory_address : std::bool_constant<std::is_pointer_v<T> || std::is_member_pointer_v<T> ||
                                              std::is_reference_v<T> || view_of_memory<T>> {};
template <class T>
struct is_memory_address<std::reference_wrapper<T>> : std::true_type {};
template <class T>
struct is_memory_address<std::initializer_list<T>> : std::true_type {};
template <class T, std::size_t N>
struct is_memory_address<T[N]> : is_memory_address<std::remove_cv_t<T>> {};
template <class T, std::size_t N>
struct is_memory_address<std::array<T, N>> : is_memory_address<std::remove_cv_t<T>> {};
template <class... T>
struct holds_memory_address
    : std::bool_constant<(is_memory_address<std::remove_cv_t<T>>::value || ...)> {};
template <class First, class Second>
struct is_memory_address<std::pair<First, Second>> : holds_memory_address<First, Second> {};
template <class... T>
struct is_memory_address<std::tuple<T...>> : holds_memory_address<T...> {};
template <class T>
struct is_memory_address<std::optional<T>> : holds_memory_address<T> {};
template <class... T>
struct is_memory_address<std::variant<T...>> : holds_memory_address<T...> {};

// Containers own their elements, which may be addresses. (A path is one of paths.)
template <class T>
concept container_of_others = std::ranges::range<T> && !std::is_trivially_copyable_v<T> &&
                              !view_of_memory<T> && !std::same_as<std::ranges::range_value_t<T>, T>;
template <container_of_others T>
struct is_memory_address<T> : is_memory_address<std::ranges::range_value_t<T>> {};

// T as a whole is a pointer to data, a function or a member, a reference or a view in disguise, or
// an array, pair, tuple, optional, variant or container with such. What the members of other
// classes are nobody sees.
template <class T>
concept memory_address = is_memory_address<std::remove_cv_t<T>>::value;

// Does not compile if one of them is. Always true.
template <class... Values>
constexpr bool refuse_addresses() noexcept {
  static_assert(!(memory_address<Values> || ...),
                "a pointer, reference_wrapper, span or string_view means nothing on another node; "
                "send what it refers to: the elements (endpoint::send), an object as packed<T> "
                "(strata/serialize.hpp), or where it is as global_ptr (to_global); where it is "
                "known to mean something, send it, or a pointer instead of a reference, as "
                "local_address (strata/global_ptr.hpp)");
  return true;
}

// Does not compile if one of them is an array, which cannot be kept. Always true.
template <class... Values>
constexpr bool refuse_arrays() noexcept {
  static_assert(!(std::is_array_v<Values> || ...),
                "an argument is an array, as text in quotes is one, and arrays are no values: pass "
                "a std::array, or a std::string (strata/serialize.hpp)");
  return true;
}

}  // namespace strata::detail
