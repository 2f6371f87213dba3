// SPDX-License-Identifier: Apache-2.0
// Addresses, which mean nothing on another node. Most types that hold one are trivially copyable,
// so that alone does not say whether a value can travel.
#pragma once
#include <array>
#include <cstddef>
#include <functional>
#include <initializer_list>
#include <ranges>
#include <type_traits>

namespace strata::detail {

// std::span, std::string_view, and whatever else refers to elements in memory that it does not own.
template <class T>
concept view_of_memory = std::ranges::contiguous_range<T> && std::ranges::borrowed_range<T>;

template <class T>
struct is_memory_address
    : std::bool_constant<std::is_pointer_v<T> || std::is_member_pointer_v<T> || view_of_memory<T>> {
};
template <class T>
struct is_memory_address<std::reference_wrapper<T>> : std::true_type {};
template <class T>
struct is_memory_address<std::initializer_list<T>> : std::true_type {};
template <class T, std::size_t N>
struct is_memory_address<T[N]> : is_memory_address<std::remove_cv_t<T>> {};
template <class T, std::size_t N>
struct is_memory_address<std::array<T, N>> : is_memory_address<std::remove_cv_t<T>> {};

// T as a whole is a pointer to data, a function or a member, a reference or a view in disguise, or
// an array of such. What the members of a class are nobody sees.
template <class T>
concept memory_address = is_memory_address<std::remove_cv_t<T>>::value;

// Does not compile if one of them is. Always true.
template <class... Values>
constexpr bool refuse_addresses() noexcept {
  static_assert(!(memory_address<Values> || ...),
                "a pointer, reference_wrapper, span or string_view means nothing on another node; "
                "send what it refers to: the elements (endpoint::send), an object as packed<T> "
                "(strata/serialize.hpp), or where it is as global_ptr (to_global)");
  return true;
}

}  // namespace strata::detail
