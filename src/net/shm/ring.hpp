// SPDX-License-Identifier: Apache-2.0
// Messages from one node to another through memory that both see: a ring of bytes with one producer
// and one consumer. Records are contiguous, 16-byte aligned: a header and its payload.
//
//      head_ (consumer)          tail_ (producer)          both only grow; position = value mod
//      size
//        |  records to be read  |  free
#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/quicker_way.hpp"
#include "net/shm/streaming_copy.hpp"
#include "net/wire.hpp"
#include "os/clock.hpp"
#include "os/pages.hpp"
#include "strata/detail/cpu.hpp"
#include "strata/detail/fences.hpp"

namespace strata::net::shm {

inline constexpr std::uint32_t skip_mark = 0xffff'ffff;  // length of "go on at the beginning"
inline constexpr std::size_t record_align = 16;
using detail::line_bytes;
// From so many bytes on it matters where they are written to. Below, a message and its answer are
// always the sooner there by way of the caches.
inline constexpr std::size_t choice_bytes_min = 4096;
// Behind smaller records the lines of the next one are fetched, which its writing would wait for.
inline constexpr std::size_t fetched_bytes_max = 256;

constexpr std::size_t record_bytes(std::size_t payload) noexcept {
  return (sizeof(header) + payload + record_align - 1) & ~(record_align - 1);
}

// Lives in shared memory, zero at first.
struct ring_words {
  alignas(detail::destructive_bytes) std::atomic<std::uint64_t> tail;
  alignas(detail::destructive_bytes) std::atomic<std::uint64_t> head;
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

// The producer's side, in its own memory.
class ring_writer {
 public:
  ring_writer() = default;
  ring_writer(ring_words* words, std::byte* data, std::size_t bytes) noexcept
      : words_(words), data_(data), bytes_(bytes), choice_(bytes) {}

  // False: no room. The payload is the concatenation of head and body.
  bool write(const header& h, std::span<const std::byte> head, std::span<const std::byte> body) {
    const std::size_t wanted = record_bytes(head.size() + body.size());
    const std::size_t position = tail_ % bytes_;
    const std::size_t to_end = bytes_ - position;
    const std::size_t skipped = wanted > to_end ? to_end : 0;
    if (!has_room(skipped + wanted)) return false;
    if (tail_ + skipped + wanted > populated_) [[unlikely]]
      populate(tail_ + skipped + wanted);
    std::byte* at = data_ + position;
    if (skipped != 0) {
      std::memcpy(at, &skip_mark, sizeof(skip_mark));
      at = data_;
    }
    quicker_way::turn turn{};
    if (has_streaming_copy && std::max(head.size(), body.size()) >= choice_bytes_min)
      turn = choice_.next(head.size() + body.size());
    const std::uint64_t began = turn.timed ? os::ticks() : 0;
    std::memcpy(at, &h, sizeof(h));
    copy(at + sizeof(h), head, turn.second);
    copy(at + sizeof(h) + head.size(), body, turn.second);
    tail_ += skipped + wanted;
    // Pairs with the load in ring_reader::refresh(): who sees the tail sees the record.
    words_->tail.store(tail_, std::memory_order_release);
    if (wanted < fetched_bytes_max && tail_ + 3 * line_bytes - head_seen_ <= bytes_) fetch_next();
    // The caller then looks for a sleeping receiver, which has announced itself and then looks at
    // the tail. An exchange would do, but shows the tail only after the record's lines have come.
    detail::asymmetric_fences::full();
    // With the fence, which waits for all before it.
    if (turn.timed) choice_.took(turn, head.size() + body.size(), os::ticks() - began);
    return true;
  }

  [[nodiscard]] bool has_room(std::size_t wanted) noexcept {
    if (tail_ + wanted - head_seen_ <= bytes_) return true;
    // Pairs with the store in ring_reader::release(): what was read is not overwritten
    // before it was read. Seq_cst for wait_for_room(), which announces itself before it looks.
    head_seen_ = words_->head.load(std::memory_order_seq_cst);
    return tail_ + wanted - head_seen_ <= bytes_;
  }

 private:
  // The lines of the next record, which the reader had a lap ago; not those that it wants now: the
  // one in which this record ends, and in a ring that is nearly full the oldest ones.
  void fetch_next() const noexcept {
    const std::uint64_t next = (tail_ + line_bytes - 1) & ~std::uint64_t{line_bytes - 1};
    detail::prefetch_to_write(data_ + next % bytes_);
    detail::prefetch_to_write(data_ + (next + line_bytes) % bytes_);
  }
  static void copy(std::byte* to, std::span<const std::byte> from, bool streaming) noexcept {
    if (streaming && from.size() >= choice_bytes_min)
      streaming_copy(to, from.data(), from.size());
    else if (!from.empty())
      std::memcpy(to, from.data(), from.size());
  }

  // On the first lap: as much again as has been written, up to a limit. Touched one by one each
  // page costs both ends a microsecond or two; the reader's kernel maps many at a time if they have
  // memory when it comes.
  void populate(std::uint64_t to) noexcept {
    const std::size_t more =
        std::clamp<std::size_t>(populated_, populate_bytes_least, populate_bytes_most);
    const std::size_t end = std::min<std::size_t>(bytes_, std::max(to, populated_ + more));
    (void)os::populate(data_ + populated_, end - populated_);
    populated_ = end == bytes_ ? UINT64_MAX : end;
  }
  static constexpr std::size_t populate_bytes_least = 4096;
  static constexpr std::size_t populate_bytes_most = std::size_t{64} << 10;

  ring_words* words_ = nullptr;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  // Second: past the caches. Only the writer's time counts: it is the one that waits for lines, and
  // while messages follow each other the slower side.
  quicker_way choice_;
  std::uint64_t populated_ = 0;  // up to there it has memory
  std::uint64_t tail_ = 0;
  std::uint64_t head_seen_ = 0;
};

// The consumer's side. It believes nothing that it reads.
class ring_reader {
 public:
  enum class outcome { empty, message, malformed };

  void attach(ring_words* words, const std::byte* data, std::size_t bytes) noexcept {
    words_ = words;
    data_ = data;
    bytes_ = bytes;
  }

  // The next record; payload stays valid until release().
  outcome read(header& h, std::span<const std::byte>& payload) noexcept {
    std::uint64_t head = head_.load(std::memory_order_relaxed);
    if (head == tail_seen_) {
      if (const outcome seen = refresh(head); seen != outcome::message) return seen;
    }
    std::size_t position = head % bytes_;
    // A small message that came alone: its second line is not to wait for what the first one says.
    // What lies beyond the tail is the writer's.
    const std::uint64_t there = tail_seen_ - head;
    if (there <= 2 * line_bytes && position % line_bytes + there > line_bytes)
      detail::prefetch(data_ + (position + line_bytes) % bytes_);
    std::uint32_t length = 0;
    std::memcpy(&length, data_ + position, sizeof(length));
    if (length == skip_mark) {
      head += bytes_ - position;
      position = 0;
      if (head >= tail_seen_) return outcome::malformed;
    }
    std::memcpy(&h, data_ + position, sizeof(h));
    if (h.length > payload_bytes_max || record_bytes(h.length) > bytes_ - position ||
        head + record_bytes(h.length) > tail_seen_) {
      return outcome::malformed;
    }
    payload = {data_ + position + sizeof(h), h.length};
    head_.store(head + record_bytes(h.length), std::memory_order_relaxed);
    return outcome::message;
  }

  // read() will have to look at the tail. By who reads.
  [[nodiscard]] bool has_read_all() const noexcept {
    return head_.load(std::memory_order_relaxed) == tail_seen_;
  }

  // Bytes read that the producer may not overwrite yet.
  [[nodiscard]] std::size_t held() const noexcept {
    return head_.load(std::memory_order_relaxed) - released_;
  }

  // Everything read so far may be overwritten. Seq_cst: the caller then looks for a producer that
  // waits for room. Partner: shm_transport::wait_for_room().
  void release() noexcept {
    released_ = head_.load(std::memory_order_relaxed);
    words_->head.store(released_, std::memory_order_seq_cst);
  }

  // Whether there is something to read. Any thread. Seq_cst for wait_for_messages(), which
  // announces itself before it looks.
  [[nodiscard]] bool has_something() const noexcept {
    return words_->tail.load(std::memory_order_seq_cst) != head_.load(std::memory_order_relaxed);
  }

 private:
  // `message`: there is something.
  [[nodiscard]] outcome refresh(std::uint64_t head) noexcept {
    // Pairs with the store in ring_writer::write(). Seq_cst for whoever polls after unattended().
    const std::uint64_t tail = words_->tail.load(std::memory_order_seq_cst);
    // A tail that no writer can have written is never followed. Nor is it nothing: has_something()
    // would have the reader come back for ever.
    if (tail - head > bytes_) return outcome::malformed;
    tail_seen_ = tail;
    return head == tail ? outcome::empty : outcome::message;
  }

  ring_words* words_ = nullptr;
  const std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  std::atomic<std::uint64_t> head_{0};  // written by whoever polls
  std::uint64_t released_ = 0;
  std::uint64_t tail_seen_ = 0;
};

}  // namespace strata::net::shm
