// SPDX-License-Identifier: Apache-2.0
// The least that a message through shared memory can cost: a ring of fixed slots, one flag each, no
// header, no lock, no choice of peer; who sleeps, until a message has come or a slot is free, is
// woken by a futex.
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <atomic>
#include <cstring>
#include <new>

#include "bench/messages/pair.hpp"

namespace {

using bench::waiting;

constexpr std::size_t usual_bytes = std::size_t{2} << 20;

void futex(std::atomic<std::uint32_t>& word, int what, std::uint32_t value) {
  ::syscall(SYS_futex, &word, what, value, nullptr, nullptr, 0);
}

// How far one side is. Only grows; the other side waits until it does.
class position {
 public:
  void move(std::uint64_t to, waiting how) {
    if (how == waiting::looks) return at_.store(to, std::memory_order_release);
    // We move, then look for a sleeper; wait() tells that it sleeps, then looks whether we have
    // moved. Unless both are seq_cst each can miss the other.
    at_.store(to, std::memory_order_seq_cst);
    if (asleep_.load(std::memory_order_seq_cst) != 0 &&
        asleep_.exchange(0, std::memory_order_seq_cst) != 0) {
      futex(asleep_, FUTEX_WAKE, 1);
    }
  }
  // Where it is once that is no longer `before`.
  std::uint64_t wait(std::uint64_t before, waiting how) {
    for (bench::patience left(how);;) {
      // Pairs with move(): what was written, or read, before it moved is done.
      const std::uint64_t now = at_.load(std::memory_order_acquire);
      if (now != before) return now;
      if (left.lasts()) continue;
      asleep_.store(1, std::memory_order_seq_cst);  // partner: move()
      if (at_.load(std::memory_order_seq_cst) == before) futex(asleep_, FUTEX_WAIT, 1);
      asleep_.store(0, std::memory_order_relaxed);
    }
  }

 private:
  alignas(64) std::atomic<std::uint64_t> at_{0};
  alignas(64) std::atomic<std::uint32_t> asleep_{0};
};

// One direction, in shared memory.
struct channel {
  position tail, head;
  alignas(64) std::byte data[2 * bench::message_bytes_max];
};

class way {
 public:
  way(channel& out, channel& in) : out_(out), in_(in) {}
  void begin(const bench::exchange& e) {
    bytes_ = e.bytes;
    slot_ = (bytes_ + 63) & ~std::size_t{63};
    // No larger than it must be, so that it stays in the caches.
    slots_ = std::max<std::size_t>(usual_bytes / slot_, 2);
    waits_ = e.waits;
    message_.resize(bytes_);
    into_.resize(bytes_);
  }
  void send() {
    if (sent_ - out_head_ == slots_) out_head_ = out_.head.wait(out_head_, waits_);
    std::memcpy(out_.data + sent_ % slots_ * slot_, message_.data(), bytes_);
    out_.tail.move(++sent_, waits_);
  }
  void receive() {
    if (in_tail_ == received_) in_tail_ = in_.tail.wait(received_, waits_);
    std::memcpy(into_.data(), in_.data + received_ % slots_ * slot_, bytes_);
    ++received_;
    // Room is given back in quarters; a ring of few slots at once.
    if (received_ - released_ >= std::max<std::uint64_t>(slots_ / 4, 1)) {
      released_ = received_;
      in_.head.move(released_, waits_);
    }
  }
  void end() {}

 private:
  channel& out_;
  channel& in_;
  std::size_t bytes_ = 0, slot_ = 0, slots_ = 0;
  waiting waits_ = waiting::looks;
  std::uint64_t sent_ = 0, out_head_ = 0, received_ = 0, released_ = 0, in_tail_ = 0;
  std::vector<std::byte> message_, into_;
};

}  // namespace

int main(int argc, char** argv) {
  const bench::exchange e(bench::arguments(argc, argv).rest);
  void* const memory = ::mmap(nullptr, 2 * sizeof(channel), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) bench::arguments::refuse("no shared memory");
  auto* const channels = new (memory) channel[2];
  way first(channels[0], channels[1]), second(channels[1], channels[0]);
  return bench::print_exchange("bare_ring", e, bench::measure_pair(e, first, second));
}
