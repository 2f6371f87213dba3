// SPDX-License-Identifier: Apache-2.0
#include "net/udp/receiving.hpp"

#include <algorithm>
#include <cstring>

namespace strata::net::udp {

namespace {

// RFC 9000, section 13.2.2: every second packet is acknowledged at once.
constexpr unsigned unanswered_max = 2;
// More gaps than an honest network makes; the oldest are given up, and their data comes again.
constexpr std::size_t seen_intervals_max = 1024;

}  // namespace

receiving::outcome receiving::on_packet(const packet& p, std::int64_t now_ns) {
  if (p.number < floor_ || seen_.contains(p.number)) return outcome::repeated;
  if ((p.flags & has_data) != 0) {
    const std::uint64_t end = p.offset + p.data.size();
    if (end < p.offset || end > window()) return outcome::malformed;
    store(p.offset, p.data);
  }
  const bool is_next = seen_.empty() ? p.number == floor_ : p.number == largest_ + 1;
  seen_.add(p.number, p.number + 1);
  if (p.number >= largest_) {
    largest_ = p.number;
    largest_at_ = now_ns;
  }
  floor_ = std::max(floor_, p.number - p.waited_for);
  seen_.remove_below(floor_);
  while (seen_.size() > seen_intervals_max) {
    floor_ = seen_.all().begin()->second;
    seen_.remove_below(floor_);
  }
  if ((p.flags & (has_data | wants_answer)) == 0) return outcome::taken;
  ++unanswered_;
  // A new gap, or the end of one, is told at once: that is how the sender learns of losses.
  const bool at_once = unanswered_ >= unanswered_max || !is_next || (p.flags & has_data) == 0;
  due_ns_ = at_once ? 0 : std::min(due_ns_, now_ns + settings_.delay_ns);
  return outcome::taken;
}

void receiving::store(std::uint64_t offset, std::span<const std::byte> data) {
  if (offset < complete_to_) {
    const std::uint64_t known = std::min<std::uint64_t>(complete_to_ - offset, data.size());
    offset += known;
    data = data.subspan(static_cast<std::size_t>(known));
  }
  if (data.empty()) return;
  std::memcpy(ring_.free().data() + (offset - complete_to_), data.data(), data.size());
  std::uint64_t to = offset + data.size();
  if (offset != complete_to_ || !early_.empty()) {
    early_.add(offset, to);
    if (early_.all().begin()->first != complete_to_) return;
    to = early_.all().begin()->second;
    early_.remove_below(to);
  }
  ring_.append(static_cast<std::size_t>(to - complete_to_));
  complete_to_ = to;
}

void receiving::consume(std::size_t bytes) {
  // An empty ring may start over only if nothing waits behind a gap.
  if (early_.empty()) {
    ring_.consume(bytes);
  } else {
    ring_.consume_in_place(bytes);
  }
  consumed_ += bytes;
  if (window() - announced_ >= ring_.capacity() / 4) due_ns_ = 0;
}

acknowledgement receiving::acknowledge(std::int64_t now_ns) {
  acknowledgement a;
  a.window = announced_ = window();
  const std::int64_t delay_us = seen_.empty() ? 0 : (now_ns - largest_at_) / 1000;
  a.delay_us = static_cast<std::uint32_t>(std::clamp<std::int64_t>(delay_us, 0, UINT32_MAX));
  for (auto i = seen_.all().rbegin(); i != seen_.all().rend() && a.count < ranges_max; ++i) {
    const std::uint64_t length = std::min<std::uint64_t>(i->second - i->first, UINT32_MAX);
    a.ranges[a.count++] = {i->second - length, i->second};
    // Only the first can be as long, and what lies below it would be told wrongly.
    if (length != i->second - i->first) break;
  }
  unanswered_ = 0;
  due_ns_ = INT64_MAX;
  return a;
}

}  // namespace strata::net::udp
