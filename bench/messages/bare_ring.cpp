// SPDX-License-Identifier: Apache-2.0
// The least that a message through shared memory can cost: a ring of fixed slots, one flag each, no
// header, no lock, no choice of peer; a receiver that sleeps is woken by a futex.
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <atomic>
#include <cstring>
#include <new>

#include "bench/messages/pair.hpp"

namespace {

constexpr std::size_t ring_bytes = std::size_t{1} << 20;

// One direction, in shared memory. Positions only grow.
struct channel {
  alignas(64) std::atomic<std::uint64_t> tail{0};
  alignas(64) std::atomic<std::uint64_t> head{0};
  alignas(64) std::atomic<std::uint32_t> asleep{0};
  alignas(64) std::byte data[2 * ring_bytes];
};

void futex(std::atomic<std::uint32_t>& word, int what, std::uint32_t value) {
  ::syscall(SYS_futex, &word, what, value, nullptr, nullptr, 0);
}

class way {
 public:
  way(channel& out, channel& in) : out_(out), in_(in) {}
  void begin(const bench::exchange& e) {
    bytes_ = e.bytes;
    if (bytes_ > 2 * ring_bytes) bench::arguments::refuse("the ring has room for 2 MiB");
    slot_ = (bytes_ + 63) & ~std::size_t{63};
    slots_ = 2 * ring_bytes / slot_;
    sleeps_ = e.sleeps();
    message_.resize(bytes_);
    into_.resize(bytes_);
  }
  void send() {
    while (sent_ - out_head_ == slots_) out_head_ = out_.head.load(std::memory_order_acquire);
    std::memcpy(out_.data + sent_ % slots_ * slot_, message_.data(), bytes_);
    ++sent_;
    if (!sleeps_) return out_.tail.store(sent_, std::memory_order_release);
    out_.tail.store(sent_, std::memory_order_seq_cst);
    if (out_.asleep.load(std::memory_order_seq_cst) != 0 &&
        out_.asleep.exchange(0, std::memory_order_seq_cst) != 0) {
      futex(out_.asleep, FUTEX_WAKE, 1);
    }
  }
  void receive() {
    while (in_tail_ == received_) {
      in_tail_ = in_.tail.load(std::memory_order_acquire);
      if (!sleeps_ || in_tail_ != received_) continue;
      in_.asleep.store(1, std::memory_order_seq_cst);
      in_tail_ = in_.tail.load(std::memory_order_seq_cst);
      if (in_tail_ == received_) futex(in_.asleep, FUTEX_WAIT, 1);
      in_.asleep.store(0, std::memory_order_relaxed);
    }
    std::memcpy(into_.data(), in_.data + received_ % slots_ * slot_, bytes_);
    ++received_;
    // Room is given back in quarters; a ring of few slots at once.
    if (received_ - released_ >= std::max<std::uint64_t>(slots_ / 4, 1)) {
      released_ = received_;
      in_.head.store(released_, std::memory_order_release);
    }
  }
  void end() {}

 private:
  channel& out_;
  channel& in_;
  std::size_t bytes_ = 0, slot_ = 0, slots_ = 0;
  bool sleeps_ = false;
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
