// SPDX-License-Identifier: Apache-2.0
// Where values come to be by their bytes, which come from elsewhere. One that is trivially copyable
// needs no constructor for that.
#pragma once
#include <cstddef>
#include <cstring>
#include <memory>
#include <type_traits>
#include <utility>

namespace strata::detail {

// Room for a T: nothing is in it until its bytes are written there. An object begins as T().
template <class T>
struct value_room {
  T value = T();
};
template <class T>
requires std::is_trivially_copyable_v<T>
struct value_room<T> {
  value_room() noexcept {}
  union {
    T value;
  };
};

// Writes them there. (Through void: the type may have no assignment.)
template <class T>
void fill_from(T& value, const std::byte* bytes) noexcept {
  static_assert(std::is_trivially_copyable_v<T>);
  std::memcpy(static_cast<void*>(std::addressof(value)), bytes, sizeof(T));
}

// The T of which fill(T&) writes what it is.
template <class T, class Fill>
T value_by(Fill&& fill) {
  if constexpr (std::is_default_constructible_v<T>) {
    T value;  // where the caller wants it: large ones are not copied
    fill(value);
    return value;
  } else {
    value_room<T> room;
    fill(room.value);
    return std::move(room.value);
  }
}

}  // namespace strata::detail
