// SPDX-License-Identifier: Apache-2.0
// Values and objects as bytes, one after the other, and again as what they were: arguments and
// results on their way to another node.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "strata/detail/remote.hpp"
#include "strata/detail/value_room.hpp"

namespace strata::detail {

// How an object becomes bytes, and again one. strata/serialize.hpp knows it of objects.
template <class T>
struct object_codec {
  static constexpr bool is_known = false;
  static constexpr bool exists = true;  // nobody knows
};
template <class T>
concept plain_value = std::is_void_v<T> || std::is_trivially_copyable_v<T>;
// What can become bytes at all, as far as somebody has said how; and what can in fact.
template <class T>
inline constexpr bool may_travel = plain_value<T> || object_codec<std::remove_cv_t<T>>::is_known;
template <class T>
inline constexpr bool can_be_bytes = plain_value<T> || object_codec<std::remove_cv_t<T>>::exists;

// What travels within a call as it is.
template <class T>
inline constexpr std::size_t plain_bytes = sizeof(T);
template <>
inline constexpr std::size_t plain_bytes<void> = 0;
template <class... Values>
inline constexpr bool fit_a_call = (plain_value<Values> && ...) &&
                                   (std::size_t{0} + ... +
                                    plain_bytes<Values>) <= travelling_bytes_max;

using object_bytes = std::vector<std::byte>;

// Bytes that come from another node; what they are at first does not matter.
class received_bytes {
 public:
  received_bytes() noexcept = default;
  // Throws std::bad_alloc.
  explicit received_bytes(std::size_t n)
      : data_(std::make_unique_for_overwrite<std::byte[]>(n)), size_(n) {}
  explicit received_bytes(std::span<const std::byte> from) : received_bytes(from.size()) {
    std::copy(from.begin(), from.end(), data_.get());
  }
  [[nodiscard]] std::span<std::byte> all() const noexcept { return {data_.get(), size_}; }

 private:
  std::unique_ptr<std::byte[]> data_;
  std::size_t size_ = 0;
};

// Throws serialization_error.
[[noreturn, gnu::cold]] void refuse_object_bytes(const char* why);

template <class T>
void append_value(object_bytes& to, const T& value) {
  if constexpr (std::is_trivially_copyable_v<T>) {
    // insert() makes g++ 12 see writes where there is no room.
    const std::size_t before = to.size();
    to.resize(before + sizeof(T));
    std::memcpy(to.data() + before, std::addressof(value), sizeof(T));
  } else {
    object_codec<T>::append(to, value);
  }
}

template <class T>
void take_value(std::span<const std::byte>& from, T& value) {
  if constexpr (std::is_trivially_copyable_v<T>) {
    if (from.size() < sizeof(T)) refuse_object_bytes("there are too few");
    fill_from(value, from.data());
    from = from.subspan(sizeof(T));
  } else {
    object_codec<T>::take(from, value);
  }
}

inline void require_all_taken(std::span<const std::byte> rest) {
  if (!rest.empty()) refuse_object_bytes("there are too many");
}

template <class... Values>
object_bytes bytes_of_all(const Values&... values) {
  object_bytes out;
  (append_value(out, values), ...);
  return out;
}

// On the heap, as stacks are small. The bytes go as soon as they can: they may be many.
template <class... Values>
using values_on_heap = std::unique_ptr<std::tuple<value_room<Values>...>>;
template <class... Values>
values_on_heap<Values...> values_of(received_bytes in) {
  auto values = std::make_unique<std::tuple<value_room<Values>...>>();
  std::span<const std::byte> rest = in.all();
  std::apply([&](value_room<Values>&... v) { (take_value(rest, v.value), ...); }, *values);
  require_all_taken(rest);
  return values;
}

// A result out of its bytes; of void none.
template <class Result>
Result result_of(std::span<const std::byte> bytes) {
  if constexpr (std::is_void_v<Result>) {
    require_all_taken(bytes);
  } else {
    return value_by<Result>([&](Result& value) {
      take_value(bytes, value);
      require_all_taken(bytes);
    });
  }
}
// Whether it may be larger than an answer.
template <class Result>
inline constexpr bool may_be_large = !fit_a_call<Result>;

}  // namespace strata::detail
