// SPDX-License-Identifier: Apache-2.0
// Values in and out of messages, with every bound checked.
#pragma once
#include <cstddef>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace strata::cluster {

// A peer has sent what no node of this program sends: a bug or a forgery. Whoever polls drops the
// peer.
class malformed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A message under construction, at most a few hundred bytes; large payloads travel beside it.
class writer {
 public:
  template <class T>
  requires std::is_trivially_copyable_v<T> writer& add(const T& value) {
    std::memcpy(grow(sizeof(T)), &value, sizeof(T));
    return *this;
  }
  writer& add_bytes(std::span<const std::byte> more) {
    bytes_.insert(bytes_.end(), more.begin(), more.end());
    return *this;
  }
  writer& add_text(std::string_view text) {
    return add_bytes(std::as_bytes(std::span(text.data(), text.size())));
  }
  // Room for `n` bytes that the caller fills in.
  std::byte* grow(std::size_t n) {
    bytes_.resize(bytes_.size() + n);
    return bytes_.data() + bytes_.size() - n;
  }
  // From now on so many bytes more need no memory.
  void reserve(std::size_t n) { bytes_.reserve(bytes_.size() + n); }
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::size_t size() const noexcept { return bytes_.size(); }

 private:
  std::vector<std::byte> bytes_;
};

class reader {
 public:
  explicit reader(std::span<const std::byte> bytes) noexcept : rest_(bytes) {}

  template <class T>
  requires std::is_trivially_copyable_v<T> T take() {
    T value;
    std::memcpy(&value, take_bytes(sizeof(T)).data(), sizeof(T));
    return value;
  }
  std::span<const std::byte> take_bytes(std::size_t n) {
    if (n > rest_.size()) throw malformed("a message is shorter than its kind");
    const auto taken = rest_.first(n);
    rest_ = rest_.subspan(n);
    return taken;
  }
  std::span<const std::byte> take_rest() noexcept { return std::exchange(rest_, {}); }
  std::string take_text() {
    const auto rest = take_rest();
    return std::string(reinterpret_cast<const char*>(rest.data()), rest.size());
  }
  [[nodiscard]] bool empty() const noexcept { return rest_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return rest_.size(); }  // of the rest
  // Nothing may follow.
  void end() const {
    if (!empty()) throw malformed("a message is longer than its kind");
  }

 private:
  std::span<const std::byte> rest_;
};

}  // namespace strata::cluster
