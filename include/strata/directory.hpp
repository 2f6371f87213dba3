// SPDX-License-Identifier: Apache-2.0
// Names for what the threads of a job share: an endpoint, the address of data, anything of up to 64
// bytes. After pCoR's directory (docs/architecture.md#sources).
//
//   strata::publish("results", box.id());                       // on one node
//   auto box = strata::await_name<strata::endpoint_id>("results");  // on any other
//
// A name belongs to the node that its hash chooses; every node remembers what it has asked for, so
// a second look-up costs no message. Withdrawing a name makes all nodes forget it before it
// returns. When a node leaves the job (`strata leave`), the names that it has published go with it.
// Visibility: who has found a name sees what was done before it was published; between nodes, whose
// memory is not shared, that is the value (docs/memory-model.md).
//
// What suspends says so; it suspends the calling thread or task, and its worker does other work.
#pragma once
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <type_traits>

#include "strata/detail/address.hpp"
#include "strata/detail/deadline.hpp"
#include "strata/detail/text_hash.hpp"
#include "strata/detail/value_room.hpp"
#include "strata/error.hpp"

namespace strata {

/// The name is taken.
class name_in_use_error : public error {
 public:
  using error::error;
};

namespace detail {

inline constexpr std::size_t name_bytes_max = 63;
inline constexpr std::size_t published_bytes_max = 64;

// What travels.
struct resource_name {
  std::array<char, name_bytes_max + 1> text{};
  // To the first zero byte. Of one that another node has sent there may be none.
  [[nodiscard]] std::string_view view() const noexcept {
    return {text.data(),
            static_cast<std::size_t>(std::find(text.begin(), text.end() - 1, '\0') - text.begin())};
  }
};
struct published_value {
  std::uint64_t type = 0;  // see type_mark
  std::uint32_t bytes = 0;
  std::uint8_t found = 0;         // 1: yes; no bool, as another node sends it
  std::uint64_t publication = 0;  // no other in this job has the same
  std::array<std::byte, published_bytes_max> data{};
};

// Tells types apart in the processes of one program.
template <class T>
constexpr std::uint64_t type_mark() noexcept {
  return text_hash(__PRETTY_FUNCTION__);
}

// Throws misuse_error: empty, too long, with a zero in it.
resource_name checked_name(std::string_view name);
// As publication v.publication; 0: a new one.
void publish_value(const resource_name& name, const published_value& v);
// Waits for it until then at the latest; not at all: 0.
published_value look_up(const resource_name& name, std::int64_t deadline_ns);
// What travels of a deadline: clocks of nodes differ.
inline std::int64_t time_until(std::int64_t deadline_ns) noexcept {
  return deadline_ns == INT64_MAX ? INT64_MAX
                                  : std::max<std::int64_t>(deadline_ns - deadline_now(), 0);
}
// That publication of the name alone; 0: whichever there is.
bool withdraw_value(const resource_name& name, std::uint64_t publication);
[[noreturn]] void refuse_type(const resource_name& name);

template <class T>
published_value published(const T& value) noexcept {
  published_value v;
  v.type = type_mark<T>();
  v.bytes = sizeof(T);
  std::memcpy(v.data.data(), std::addressof(value), sizeof(T));
  return v;
}

template <class T>
T value_as(const resource_name& name, const published_value& v) {
  refuse_addresses<T>();
  if (v.type != type_mark<T>()) refuse_type(name);
  return value_by<T>([&](T& value) { fill_from(value, v.data.data()); });
}

}  // namespace detail

/// Makes `value` known under `name` (1 to 63 bytes) to the whole job, until it is withdrawn or this
/// node leaves. Suspends until it is known. An address as a value (a pointer, a std::span) does not
/// compile: publish to_global() of it. Throws name_in_use_error, misuse_error for a name that
/// cannot be, outside a runtime and in a fiber, node_lost_error. While the name is being withdrawn
/// it waits for that: nobody finds what it stood for before, once this has returned.
template <class T>
requires(std::is_trivially_copyable_v<T> &&
         sizeof(T) <= detail::published_bytes_max) void publish(std::string_view name,
                                                                const T& value) {
  detail::refuse_addresses<T>();
  detail::publish_value(detail::checked_name(name), detail::published(value));
}

/// What is known under that name, or nothing. Suspends when this node does not remember it: for a
/// call to the name's home. Throws misuse_error if it is of another type, and as publish() (in a
/// fiber only where this node does not remember it); node_lost_error.
template <class T>
std::optional<T> find_name(std::string_view name) {
  const detail::resource_name n = detail::checked_name(name);
  const detail::published_value v = detail::look_up(n, 0);
  if (!v.found) return std::nullopt;
  return detail::value_as<T>(n, v);
}

/// The same, and suspends until somebody has published it. Any number of threads may wait, for any
/// number of names.
template <class T>
T await_name(std::string_view name) {
  const detail::resource_name n = detail::checked_name(name);
  return detail::value_as<T>(n, detail::look_up(n, INT64_MAX));
}

/// The same, for that long at most, and for calls to the name's home; nothing if there was none by
/// then.
template <class T, class Rep, class Period>
std::optional<T> await_name_for(std::string_view name,
                                const std::chrono::duration<Rep, Period>& time) {
  const detail::resource_name n = detail::checked_name(name);
  const detail::published_value v = detail::look_up(n, detail::deadline_after(time));
  if (!v.found) return std::nullopt;
  return detail::value_as<T>(n, v);
}

/// Takes the name back, whoever has published it; true if there was one. No node remembers it when
/// this returns. Suspends: for a call to the name's home, which calls all nodes that remember it at
/// once.
/// Throws as publish(), but for name_in_use_error; and std::bad_alloc, or another node's failure to
/// take such a call as remote_error: the name may be gone then, and still be remembered by nodes
/// that could not be told.
bool withdraw(std::string_view name);

}  // namespace strata
