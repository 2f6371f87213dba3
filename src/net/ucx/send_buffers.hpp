// SPDX-License-Identifier: Apache-2.0
// Copies of messages on their way out: UCX reads them until it says that it has sent them. Those
// that come back are used again.
#pragma once
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "net/wire.hpp"

namespace strata::net::ucx {

// What every message begins with. Not an active message's own header: UCX would gather the two from
// different places, which costs more than to have copied them into one.
struct wire_head {
  header h;
  std::uint64_t pass;  // see pass.hpp
};
static_assert(sizeof(wire_head) == 24 && std::is_trivially_copyable_v<wire_head>);

// What a block's bytes come with. It is an active message's header, because the bytes stay where
// they are; only source and destination of `from.h` count.
struct block_head {
  wire_head from;
  std::uint64_t number;  // under which its destination expects it
};
static_assert(sizeof(block_head) == 32 && std::is_trivially_copyable_v<block_head>);

struct parcel {
  void* peer = nullptr;
  bool is_message = false;  // or several, and none of the transport's own
  std::size_t size = 0;
  std::size_t capacity = 0;
  // A wire_head and the payload; of a batch one after the other.
  std::unique_ptr<std::byte[]> bytes;

  void append(const wire_head& first, std::span<const std::byte> head,
              std::span<const std::byte> body) noexcept {
    append({reinterpret_cast<const std::byte*>(&first), sizeof first});
    append(head);
    append(body);
  }

 private:
  void append(std::span<const std::byte> more) noexcept {
    if (!more.empty()) std::memcpy(bytes.get() + size, more.data(), more.size());
    size += more.size();
  }
};

// Not thread-safe.
class send_buffers {
 public:
  // An empty one for so many bytes, at most those of one message.
  std::unique_ptr<parcel> take(std::size_t bytes) {
    const bool is_small = bytes <= small_bytes;
    auto& from = is_small ? small_ : large_;
    std::unique_ptr<parcel> p;
    if (from.empty()) {
      p = std::make_unique<parcel>();
      p->capacity = is_small ? small_bytes : sizeof(wire_head) + payload_bytes_max;
      p->bytes = std::make_unique_for_overwrite<std::byte[]>(p->capacity);
    } else {
      p = std::move(from.back());
      from.pop_back();
    }
    p->size = 0;
    return p;
  }
  void put_back(std::unique_ptr<parcel> p) {
    auto& to = p->capacity == small_bytes ? small_ : large_;
    if (to.size() < kept_max) to.push_back(std::move(p));
  }

 private:
  static constexpr std::size_t small_bytes = 1024;
  static constexpr std::size_t kept_max = 64;  // of each size
  std::vector<std::unique_ptr<parcel>> small_, large_;
};

}  // namespace strata::net::ucx
