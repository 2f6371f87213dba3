// SPDX-License-Identifier: Apache-2.0
// The least that a message through shared memory can cost: a ring of fixed slots, one flag each, no
// header, no lock, no choice of peer; who sleeps, until a message has come or a slot is free, is
// woken by a futex. With the word `zero-copy` behind the count a slot says only where the message
// is: the receiver has the kernel read it out of the sender's memory into its own, which is the one
// copy.
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <atomic>
#include <cerrno>
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
    for (bench::wait_limit left(how);;) {
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

// False where this process must not.
bool read_process(pid_t from, const void* where, void* into, std::size_t bytes) {
  for (std::size_t done = 0; done < bytes;) {
    const iovec here{static_cast<std::byte*>(into) + done, bytes - done};
    const iovec there{static_cast<std::byte*>(const_cast<void*>(where)) + done, bytes - done};
    const ssize_t n = ::process_vm_readv(from, &here, 1, &there, 1, 0);
    if (n == 0 || (n < 0 && errno != EINTR)) return false;
    if (n > 0) done += static_cast<std::size_t>(n);
  }
  return true;
}

// Whether a child may read its parent, which is more than the other way round.
bool processes_can_be_read() {
  ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);  // under Yama; unknown elsewhere
  const int number = 1;
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) {
    int seen = 0;
    ::_exit(read_process(parent, &number, &seen, sizeof seen) && seen == number ? 0 : 1);
  }
  int status = 1;
  return child > 0 && ::waitpid(child, &status, 0) == child && status == 0;
}

// One direction, in shared memory.
struct channel {
  position tail, head;
  pid_t sender = 0;  // written before the first message
  alignas(64) std::byte data[2 * bench::message_bytes_max];
};

class way {
 public:
  way(channel& out, channel& in, bool zero_copy) : out_(out), in_(in), zero_copy_(zero_copy) {}
  void begin(const bench::exchange& e) {
    bytes_ = e.bytes;
    slot_ = (bytes_ + 63) & ~std::size_t{63};
    // No larger than it must be, so that it stays in the caches.
    slots_ = std::max<std::size_t>(usual_bytes / slot_, 2);
    waits_ = e.waits;
    // What is read where it is stays as it is until its slot is free again.
    message_.resize(zero_copy_ ? slots_ * slot_ : bytes_);
    into_.resize(bytes_);
    out_.sender = ::getpid();
  }
  void send() {
    if (sent_ - out_head_ == slots_) out_head_ = out_.head.wait(out_head_, waits_);
    const std::size_t at = sent_ % slots_ * slot_;
    if (zero_copy_) {
      const std::byte* const where = message_.data() + at;
      std::memcpy(out_.data + at, &where, sizeof where);
    } else {
      std::memcpy(out_.data + at, message_.data(), bytes_);
    }
    out_.tail.move(++sent_, waits_);
  }
  void receive() {
    if (in_tail_ == received_) in_tail_ = in_.tail.wait(received_, waits_);
    const std::byte* const slot = in_.data + received_ % slots_ * slot_;
    if (zero_copy_) {
      fetch(slot);
    } else {
      std::memcpy(into_.data(), slot, bytes_);
    }
    ++received_;
    // Room is given back in quarters; a ring of few slots at once.
    if (received_ - released_ >= std::max<std::uint64_t>(slots_ / 4, 1)) {
      released_ = received_;
      in_.head.move(released_, waits_);
    }
  }
  // What we have sent is in our memory, which must be there until it has been read.
  void end() {
    in_.head.move(received_, waits_);
    while (out_head_ != sent_) out_head_ = out_.head.wait(out_head_, waits_);
  }

 private:
  void fetch(const std::byte* slot) {
    const void* where = nullptr;
    std::memcpy(&where, slot, sizeof where);
    if (!read_process(in_.sender, where, into_.data(), bytes_))
      bench::arguments::refuse("the other process cannot be read");
  }

  channel& out_;
  channel& in_;
  const bool zero_copy_;
  std::size_t bytes_ = 0, slot_ = 0, slots_ = 0;
  waiting waits_ = waiting::looks;
  std::uint64_t sent_ = 0, out_head_ = 0, received_ = 0, released_ = 0, in_tail_ = 0;
  std::vector<std::byte> message_, into_;
};

}  // namespace

int main(int argc, char** argv) {
  const bench::arguments given(argc, argv);
  const bench::exchange e(given.rest);
  const bool zero_copy = given.rest.size() > 3 && given.rest[3] == "zero-copy";
  if (given.rest.size() > 3 && !zero_copy)
    bench::arguments::refuse("what follows the count is zero-copy, not " + given.rest[3]);
  if (zero_copy && !processes_can_be_read())
    bench::arguments::refuse(
        "zero-copy: here one process must not read another (process_vm_readv)");
  void* const memory = ::mmap(nullptr, 2 * sizeof(channel), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) bench::arguments::refuse("no shared memory");
  auto* const channels = new (memory) channel[2];
  way first(channels[0], channels[1], zero_copy), second(channels[1], channels[0], zero_copy);
  return bench::print_exchange("bare_ring", e, bench::measure_pair(e, first, second));
}
