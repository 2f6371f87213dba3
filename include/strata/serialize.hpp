// SPDX-License-Identifier: Apache-2.0
// Messages, and calls on other nodes, with whatever cereal can serialise
// (https://uscilabs.github.io/cereal/): strings, containers, and types with a serialize() function.
// For programs that have cereal's headers (Debian: libcereal-dev); the library does not need them.
// Each container of the standard library needs cereal's header for it,
// <cereal/types/vector.hpp> for std::vector, <cereal/types/map.hpp> for std::map and so on: without
// it the compiler says "cereal could not find any output serialization functions for the provided
// type".
//
//   #include <cereal/types/map.hpp>
//   #include <cereal/types/string.hpp>
//
//   strata::send_object(mine, to, 7, std::map<std::string, int>{{"one", 1}});
//   auto m = strata::receive_object<std::map<std::string, int>>(mine);
//
// With this header, calls and threads on a named node (strata/remote_thread.hpp), branches of
// fork2join (strata/call.hpp) and tokens (strata/fiber.hpp) take and return such objects as they
// are. Their types have a default constructor.
//
//   std::vector<hit> search(const std::string& query, int k);
//   auto hits = strata::call<search>(strata::on_node{3}, std::string("ACGT"), 10);
#pragma once
#include <algorithm>
#include <array>
#include <cereal/archives/binary.hpp>
#include <cstdint>
#include <istream>
#include <ostream>
#include <ranges>
#include <span>
#include <streambuf>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "strata/call.hpp"
#include "strata/message.hpp"

namespace strata {

namespace detail {

class byte_sink : public std::streambuf {
 public:
  byte_sink() = default;
  explicit byte_sink(std::vector<std::byte>&& before) : bytes(std::move(before)) {}
  std::vector<std::byte> bytes;

 protected:
  int_type overflow(int_type c) override {
    if (c != traits_type::eof()) bytes.push_back(static_cast<std::byte>(c));
    return c;
  }
  std::streamsize xsputn(const char* from, std::streamsize n) override {
    const auto* const first = reinterpret_cast<const std::byte*>(from);
    bytes.insert(bytes.end(), first, first + n);
    return n;
  }
};

class byte_source : public std::streambuf {
 public:
  explicit byte_source(std::span<const std::byte> from) {
    // A streambuf that is only read does not write.
    auto* const first = const_cast<char*>(reinterpret_cast<const char*>(from.data()));
    setg(first, first, first + from.size());
  }
  [[nodiscard]] bool is_used_up() const noexcept { return gptr() == egptr(); }
  [[nodiscard]] std::size_t left() const noexcept {
    return static_cast<std::size_t>(egptr() - gptr());
  }
};

// Reads one of `source`. Throws serialization_error.
template <class T>
void read_object(byte_source& source, T& object) {
  std::istream in(&source);
  try {
    cereal::BinaryInputArchive archive(in);
    archive(object);
  } catch (const std::exception& e) {
    throw serialization_error(std::string("a message does not hold the object: ") + e.what());
  }
}

// Whether cereal finds functions for it; for what a container holds as well, since those for the
// container itself it finds in any case.
template <class T>
constexpr bool can_serialise() {
  if constexpr (requires { typename T::mapped_type; }) {
    if constexpr (!can_serialise<typename T::key_type>() ||
                  !can_serialise<typename T::mapped_type>())
      return false;
  } else if constexpr (container_of_others<T>) {
    if constexpr (!can_serialise<std::remove_cv_t<std::ranges::range_value_t<T>>>()) return false;
  }
  return cereal::traits::is_output_serializable<T, cereal::BinaryOutputArchive>::value &&
         cereal::traits::is_input_serializable<T, cereal::BinaryInputArchive>::value;
}

template <class T>
requires(!plain_value<T>) struct object_codec<T> {
  static constexpr bool is_known = true;
  static constexpr bool exists = can_serialise<T>() && std::is_default_constructible_v<T>;

  static void append(std::vector<std::byte>& to, const T& object) {
    byte_sink sink(std::move(to));
    std::ostream out(&sink);
    cereal::BinaryOutputArchive archive(out);
    archive(object);
    to = std::move(sink.bytes);
  }
  static void take(std::span<const std::byte>& from, T& object) {
    byte_source source(from);
    read_object(source, object);
    from = from.last(source.left());
  }
};

}  // namespace detail

/// The object's bytes, for nodes of the same job only: they have this machine's byte order. Throws
/// what its functions serialize() and cereal throw (cereal::Exception, for example for a pointer to
/// a class that cereal does not know), std::bad_alloc.
template <class T>
std::vector<std::byte> serialized(const T& object) {
  detail::byte_sink sink;
  std::ostream out(&sink);
  cereal::BinaryOutputArchive archive(out);
  archive(object);
  return std::move(sink.bytes);
}

/// The object. Throws serialization_error when there are too few bytes or some are left.
template <class T>
T deserialized(std::span<const std::byte> bytes) {
  detail::byte_source source(bytes);
  T object;
  detail::read_object(source, object);
  if (!source.is_used_up())
    throw serialization_error("a message holds more than the object that was asked for");
  return object;
}

/// As endpoint::send(), and throws what serialized() throws.
template <class T>
void send_object(endpoint& from, endpoint_id to, message_tag tag, const T& object) {
  from.send(to, tag, serialized(object));
}

/// As endpoint::receive_message(); throws serialization_error too, and the message is gone then.
template <class T>
T receive_object(endpoint& at, endpoint_id from = any_endpoint, message_tag tag = any_tag) {
  return deserialized<T>(at.receive_message(from, tag).content);
}
/// The same into `object`, and says where it comes from and with which tag. What it throws leaves
/// `object` as it was.
template <class T>
message_info receive_object_into(endpoint& at, T& object, endpoint_id from = any_endpoint,
                                 message_tag tag = any_tag) {
  const message m = at.receive_message(from, tag);
  object = deserialized<T>(m.content);
  return m;
}

/// An object as a value of at most `Capacity` bytes, for what has to be trivially copyable: an item
/// of a mailbox, put_sync. As an argument of a call or a token it becomes bytes at once, and lies
/// on a node's shelf where it is small.
///
///   strata::drop_in(box, strata::packed(std::vector<std::string>{"one"}));
template <class T, std::size_t Capacity = 1000>
class packed {
 public:
  /// Holds nothing: get() throws serialization_error, unless T is made of no bytes.
  packed() noexcept = default;
  /// Throws misuse_error if the object takes more than Capacity bytes, and what serialized()
  /// throws.
  explicit packed(const T& object) {
    const std::vector<std::byte> bytes = serialized(object);
    if (bytes.size() > Capacity)
      throw misuse_error("an object of " + std::to_string(bytes.size()) +
                         " bytes does not fit into packed<T, " + std::to_string(Capacity) + ">");
    size_ = static_cast<std::uint32_t>(bytes.size());
    std::copy(bytes.begin(), bytes.end(), bytes_.begin());
  }
  /// The object. Throws serialization_error.
  [[nodiscard]] T get() const {
    if (size_ > Capacity) throw serialization_error("a packed object that has been damaged");
    return deserialized<T>(std::span(bytes_).first(size_));
  }

 private:
  std::uint32_t size_ = 0;
  std::array<std::byte, Capacity> bytes_{};
};

}  // namespace strata
