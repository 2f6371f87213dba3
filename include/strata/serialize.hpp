// SPDX-License-Identifier: Apache-2.0
// Messages of any type that cereal can serialise (https://uscilabs.github.io/cereal/): strings,
// containers, and types with a serialize() function. For programs that have cereal's headers; the
// library does not need them. Each container of the standard library needs cereal's header for it,
// <cereal/types/vector.hpp> for std::vector, <cereal/types/map.hpp> for std::map and so on: without
// it the compiler says "cereal could not find any output serialization functions for the provided
// type".
//
//   #include <cereal/types/map.hpp>
//   #include <cereal/types/string.hpp>
//
//   strata::send_object(mine, to, 7, std::map<std::string, int>{{"one", 1}});
//   auto m = strata::receive_object<std::map<std::string, int>>(mine);
#pragma once
#include <algorithm>
#include <array>
#include <cereal/archives/binary.hpp>
#include <cstdint>
#include <istream>
#include <ostream>
#include <span>
#include <streambuf>
#include <string>
#include <vector>

#include "strata/message.hpp"

namespace strata {

/// The bytes of a message do not make an object of the type that was asked for.
class serialization_error : public error {
 public:
  using error::error;
};

namespace detail {

class byte_sink : public std::streambuf {
 public:
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
};

}  // namespace detail

/// The object's bytes, for nodes of the same job only: they have this machine's byte order.
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
  std::istream in(&source);
  T object;
  try {
    cereal::BinaryInputArchive archive(in);
    archive(object);
  } catch (const std::exception& e) {
    throw serialization_error(std::string("a message does not hold the object: ") + e.what());
  }
  if (!source.is_used_up())
    throw serialization_error("a message holds more than the object that was asked for");
  return object;
}

/// As endpoint::send().
template <class T>
void send_object(endpoint& from, endpoint_id to, message_tag tag, const T& object) {
  from.send(to, tag, serialized(object));
}

/// As endpoint::receive_message(); throws serialization_error too, and the message is gone then.
template <class T>
T receive_object(endpoint& at, endpoint_id from = any_endpoint, message_tag tag = any_tag) {
  return deserialized<T>(at.receive_message(from, tag).content);
}

/// An object as a value of at most `Capacity` bytes, so that it can be an argument or a result of a
/// call, token or thread that goes to another node.
///
///   std::size_t count(const strata::packed<std::vector<std::string>>& words) {
///     return words.get().size();
///   }
///   strata::call<count>(strata::packed(std::vector<std::string>{"one", "two"}));
template <class T, std::size_t Capacity = 1000>
class packed {
 public:
  /// Holds nothing: get() throws serialization_error, unless T is made of no bytes.
  packed() noexcept = default;
  /// Throws misuse_error if the object takes more than Capacity bytes.
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
