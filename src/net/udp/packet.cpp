// SPDX-License-Identifier: Apache-2.0
#include "net/udp/packet.hpp"

#include <cstring>

#include "strata/detail/check.hpp"

namespace strata::net::udp {

namespace {

constexpr std::uint8_t known_flags = has_acknowledgement | has_data | wants_answer | is_end;

class writer {
 public:
  explicit writer(std::span<std::byte> into) : into_(into) {}
  template <class T>
  void put(T value) {
    put(&value, sizeof value);
  }
  void put(const void* from, std::size_t bytes) {
    STRATA_CHECK(bytes <= into_.size() - at_, bytes, at_, into_.size());
    if (bytes != 0) std::memcpy(into_.data() + at_, from, bytes);
    at_ += bytes;
  }
  [[nodiscard]] std::size_t size() const noexcept { return at_; }

 private:
  const std::span<std::byte> into_;
  std::size_t at_ = 0;
};

// Yields zeros, and says so, once the bytes are used up.
class reader {
 public:
  explicit reader(std::span<const std::byte> from) : from_(from) {}
  template <class T>
  T get() {
    T value{};
    if (from_.size() < sizeof value) {
      failed_ = true;
      from_ = {};
      return value;
    }
    std::memcpy(&value, from_.data(), sizeof value);
    from_ = from_.subspan(sizeof value);
    return value;
  }
  [[nodiscard]] std::span<const std::byte> rest() const noexcept { return from_; }
  [[nodiscard]] bool failed() const noexcept { return failed_; }

 private:
  std::span<const std::byte> from_;
  bool failed_ = false;
};

// Ranges are told from the top: numbers that are missing, numbers that are there, and so on.
bool read_acknowledgement(reader& in, std::size_t ranges, acknowledgement& ack) {
  ack.window = in.get<std::uint64_t>();
  std::uint64_t to = in.get<std::uint64_t>();
  ack.delay_us = in.get<std::uint32_t>();
  ack.count = ranges;
  if (ranges != 0 && ++to == 0) return false;
  for (std::size_t i = 0; i < ranges; ++i) {
    const std::uint64_t gap = in.get<std::uint32_t>();
    const std::uint64_t length = in.get<std::uint32_t>();
    if (in.failed() || length == 0 || (gap == 0) != (i == 0) || gap + length > to) return false;
    to -= gap;
    ack.ranges[i] = {to - length, to};
    to -= length;
  }
  return !in.failed();
}

}  // namespace

std::size_t write_packet(const packet& p, std::span<std::byte> into) {
  writer out(into);
  const bool has_ack = (p.flags & has_acknowledgement) != 0;
  out.put(packet_head{packet_mark, p.source, p.destination, p.number, p.waited_for, p.flags,
                      static_cast<std::uint8_t>(has_ack ? p.ack.count : 0), 0});
  if (has_ack) {
    const acknowledgement& a = p.ack;
    out.put(a.window);
    std::uint64_t to = a.count != 0 ? a.ranges[0].to : 0;
    out.put(a.count != 0 ? to - 1 : 0);
    out.put(a.delay_us);
    for (std::size_t i = 0; i < a.count; ++i) {
      out.put(static_cast<std::uint32_t>(to - a.ranges[i].to));
      out.put(static_cast<std::uint32_t>(a.ranges[i].to - a.ranges[i].from));
      to = a.ranges[i].from;
    }
  }
  if ((p.flags & (has_data | is_end)) != 0) out.put(p.offset);
  if ((p.flags & has_data) != 0) out.put(p.data.data(), p.data.size());
  return out.size();
}

bool read_head(std::span<const std::byte> from, packet_head& head) {
  if (from.size() < sizeof head) return false;
  std::memcpy(&head, from.data(), sizeof head);
  return head.mark == packet_mark;
}

bool read_packet(std::span<const std::byte> from, packet& p) {
  packet_head head;
  if (!read_head(from, head)) return false;
  if ((head.flags & ~known_flags) != 0 || head.ranges > ranges_max || head.zero != 0) return false;
  if ((head.flags & has_data) != 0 && (head.flags & is_end) != 0) return false;
  if (head.waited_for > head.number) return false;
  p.source = head.source;
  p.destination = head.destination;
  p.number = head.number;
  p.waited_for = head.waited_for;
  p.flags = head.flags;
  reader in(from.subspan(sizeof head));
  if ((head.flags & has_acknowledgement) != 0) {
    if (!read_acknowledgement(in, head.ranges, p.ack)) return false;
  } else if (head.ranges != 0) {
    return false;
  }
  if ((head.flags & (has_data | is_end)) != 0) p.offset = in.get<std::uint64_t>();
  if (in.failed()) return false;
  p.data = in.rest();
  return p.data.empty() != ((head.flags & has_data) != 0);
}

}  // namespace strata::net::udp
