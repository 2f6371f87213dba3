// SPDX-License-Identifier: Apache-2.0
// Messages that wait to be written together, straight from where they are. Each has its place in
// the ring of what leaves, which is filled with what the socket does not take.
//
// Not synchronised: whoever holds the role of the writer uses it.
#pragma once
#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "net/byte_ring.hpp"
#include "net/wire.hpp"
#include "strata/detail/check.hpp"

namespace strata::net::tcp {

class held_messages {
 public:
  // Larger heads are not copied: such a message is written before its sender goes on.
  static constexpr std::size_t head_bytes_max = 64;

  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
  [[nodiscard]] bool is_full() const noexcept { return count_ == messages_.size(); }
  // What of the ring is theirs.
  [[nodiscard]] std::uint64_t begin() const noexcept { return begin_; }
  [[nodiscard]] std::uint64_t end() const noexcept { return end_; }

  // Takes the place behind what is in the ring. The body stays where it is until clear().
  void add(const header& h, std::span<const std::byte> head, std::span<const std::byte> body,
           byte_ring& ring) noexcept {
    STRATA_DCHECK(!is_full(), count_);
    STRATA_DCHECK(empty() || end_ == ring.end(), end_, ring.end());
    message& m = messages_[count_++];
    m.h = h;
    if (head.size() <= head_bytes_max) {
      if (!head.empty()) std::memcpy(m.head.data(), head.data(), head.size());
      head = std::span(m.head).first(head.size());
    }
    if (count_ == 1) begin_ = ring.end();
    ring.append(sizeof h + head.size() + body.size());
    end_ = ring.end();
    m.parts = {part(std::as_bytes(std::span(&m.h, 1))), part(head), part(body)};
  }

  // All that has to be written, behind what is in the ring before them: a MiB in pieces.
  static constexpr std::size_t messages_max = 16;
  using parts = std::array<iovec, 1 + 3 * messages_max>;
  [[nodiscard]] std::span<iovec> gather(std::span<const std::byte> before, parts& into) const {
    into[0] = part(before);
    std::size_t n = 1;
    for (const message& m : std::span(messages_).first(count_))
      for (const iovec& p : m.parts) into[n++] = p;
    return std::span(into).first(n);
  }

  // Copies all but the first `gone` bytes to their places.
  void fill(byte_ring& ring, std::size_t gone) const noexcept {
    std::uint64_t place = begin_;
    for (const message& m : std::span(messages_).first(count_)) {
      for (const iovec& p : m.parts) {
        const std::size_t skip = gone < p.iov_len ? gone : p.iov_len;
        gone -= skip;
        ring.fill(place + skip, static_cast<const std::byte*>(p.iov_base) + skip, p.iov_len - skip);
        place += p.iov_len;
      }
    }
  }

  void clear() noexcept { count_ = 0; }

 private:
  struct message {
    header h;
    std::array<std::byte, head_bytes_max> head;
    std::array<iovec, 3> parts;
  };

  static iovec part(std::span<const std::byte> bytes) noexcept {
    return {const_cast<std::byte*>(bytes.data()), bytes.size()};
  }

  std::array<message, messages_max> messages_;
  std::size_t count_ = 0;
  std::uint64_t begin_ = 0;
  std::uint64_t end_ = 0;
};

}  // namespace strata::net::tcp
