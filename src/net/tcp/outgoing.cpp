// SPDX-License-Identifier: Apache-2.0
#include "net/tcp/outgoing.hpp"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include "os/clock.hpp"
#include "strata/detail/check.hpp"

namespace strata::net::tcp {

namespace {

// Then the writer, a worker with work of its own perhaps, leaves the rest to the sender thread.
constexpr unsigned writer_rounds_max = 4;
// A blocking write of more would keep the room that it makes from those who wait for it.
constexpr std::size_t blocking_bytes_max = std::size_t{64} << 10;

// Only changed under the lock: no need for a locked instruction.
void add(std::atomic<std::uint64_t>& counter, std::uint64_t n) noexcept {
  counter.store(counter.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
}

// The one that this thread has corked last.
thread_local const outgoing* corked_here = nullptr;

iovec part(const void* from, std::size_t bytes) { return {const_cast<void*>(from), bytes}; }

}  // namespace

outgoing::outgoing(int fd, std::uint32_t number, const options& o, sender_wait& sender)
    : fd_(fd),
      number_(number),
      blocking_(o.io == io_mode::blocking),
      aggregate_(o.aggregate),
      deadline_ns_(o.flush_deadline_ns),
      deadline_ticks_(os::to_ticks(o.flush_deadline_ns)),
      sender_(sender),
      ring_(std::max(o.staging_bytes, message_bytes_max)),
      burst_(o.burst_gap_ns) {}

send_outcome outgoing::try_send(header h, std::span<const std::byte> head,
                                std::span<const std::byte> body) {
  const std::size_t payload = head.size() + body.size();
  STRATA_CHECK(payload <= payload_bytes_max, payload);
  const std::size_t bytes = sizeof h + payload;
  h.length = static_cast<std::uint32_t>(payload);

  std::unique_lock lock(lock_);
  if (bytes > ring_.room() && may_write()) {
    writing_ = true;
    write_staged(lock);
  }
  if (lost_.load(std::memory_order_relaxed)) return send_outcome::lost;
  // While the socket is full, a large message waits outside rather than being copied twice.
  const bool better_later = full_ && bytes >= gather_bytes_min && ring_.used() >= payload_bytes_max;
  if (bytes > ring_.room() || better_later) {
    refused_ = true;
    return send_outcome::would_block;
  }
  h.sequence = next_sequence_++;
  add(messages_, 1);
  add(bytes_, bytes);

  const std::uint64_t now_ticks = os::ticks();
  if (ring_.used() == 0) staged_ticks_ = now_ticks;
  if (stays_corked(bytes)) {
    stage(h, head, body);
    burst_.sent(now_ticks);
    return send_outcome::staged;
  }
  if (!should_write(bytes, now_ticks)) {
    stage(h, head, body);
    burst_.sent(now_ticks);
    if (due_ns_.load() == never_ns && !writing_ && !full_) {
      leave_to_sender(blocking_ ? 0 : os::now_ns() + deadline_ns_);
    }
    return send_outcome::staged;
  }

  writing_ = true;
  if (bytes >= gather_bytes_min) {
    write_gathered(lock, h, head, body);
  } else {
    stage(h, head, body);
  }
  const std::uint64_t end = ring_.end();
  write_staged(lock);
  burst_.sent(os::ticks());
  if (lost_.load(std::memory_order_relaxed)) return send_outcome::lost;
  return ring_.begin() >= end ? send_outcome::sent : send_outcome::staged;
}

// Whether the caller becomes the writer.
bool outgoing::should_write(std::size_t bytes, std::uint64_t now_ticks) {
  const bool waits = burst_.goes_on(now_ticks) && aggregate_;
  if (!may_write()) return false;
  if (!waits) return true;
  return ring_.used() + bytes >= batch_bytes || now_ticks - staged_ticks_ >= deadline_ticks_;
}

bool outgoing::stays_corked(std::size_t bytes) const noexcept {
  return corked_here == this && aggregate_ && may_write() && bytes >= gather_bytes_min &&
         ring_.used() + bytes < corked_bytes && ring_.room() >= bytes + message_bytes_max;
}

void outgoing::cork() noexcept { corked_here = this; }

void outgoing::uncork() noexcept {
  corked_here = nullptr;
  std::unique_lock lock(lock_);
  if (ring_.used() == 0 || !may_write() || lost_.load(std::memory_order_relaxed)) return;
  writing_ = true;
  write_staged(lock);
}

void outgoing::stage(const header& h, std::span<const std::byte> head,
                     std::span<const std::byte> body) {
  ring_.append(&h, sizeof h);
  ring_.append(head.data(), head.size());
  ring_.append(body.data(), body.size());
  pending_.store(true, std::memory_order_relaxed);
}

// The writer's: writes what is staged and this message behind it, straight from where it is. Its
// place in the ring is taken first, so what others stage meanwhile comes after it; what the socket
// does not take is then copied to that place.
void outgoing::write_gathered(std::unique_lock<std::mutex>& lock, const header& h,
                              std::span<const std::byte> head, std::span<const std::byte> body) {
  const std::span<const std::byte> before = ring_.data();
  std::uint64_t place = ring_.end();
  const std::size_t bytes = sizeof h + head.size() + body.size();
  ring_.append(bytes);
  pending_.store(true, std::memory_order_relaxed);
  due_ns_.store(never_ns);
  lock.unlock();
  std::array<iovec, 4> parts = {part(before.data(), before.size()), part(&h, sizeof h),
                                part(head.data(), head.size()), part(body.data(), body.size())};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  const ssize_t n = ::sendmsg(fd_, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  const int code = errno;
  lock.lock();

  std::size_t gone = n > 0 ? static_cast<std::size_t>(n) : 0;
  gone -= std::min(gone, before.size());
  for (const iovec& p : std::span(parts).subspan(1)) {
    const std::size_t skip = std::min(gone, p.iov_len);
    gone -= skip;
    ring_.fill(place + skip, static_cast<const std::byte*>(p.iov_base) + skip, p.iov_len - skip);
    place += p.iov_len;
  }
  (void)wrote(n, before.size() + bytes, code);
}

// The writer's, who is the writer no more afterwards: writes until nothing is left, or leaves what
// is left to the sender thread.
void outgoing::write_staged(std::unique_lock<std::mutex>& lock) {
  for (unsigned round = 0;; ++round) {
    std::span<const std::byte> data = ring_.data();
    if (data.empty() || full_ || lost_.load(std::memory_order_relaxed)) break;
    if (round == writer_rounds_max) {
      leave_to_sender(0);
      break;
    }
    due_ns_.store(never_ns);
    if (blocking_) data = data.first(std::min(data.size(), blocking_bytes_max));
    lock.unlock();
    const ssize_t n =
        ::send(fd_, data.data(), data.size(), MSG_NOSIGNAL | (blocking_ ? 0 : MSG_DONTWAIT));
    const int code = errno;
    lock.lock();
    if (wrote(n, data.size(), code) != written::all && blocking_) {
      // The time for one write is over; the sender thread looks after other things and comes back.
      if (ring_.used() > 0) leave_to_sender(0);
      break;
    }
  }
  writing_ = false;
  if (lost_.load(std::memory_order_relaxed)) ring_.consume(ring_.used());
  pending_.store(ring_.used() > 0, std::memory_order_relaxed);
}

// Takes off what the socket has taken. The writer's.
outgoing::written outgoing::wrote(ssize_t n, std::size_t wanted, int code) {
  add(writes_, 1);
  if (n < 0 && code != EAGAIN && code != EWOULDBLOCK && code != EINTR) {
    lose_locked(std::generic_category().message(code));
    return written::failed;
  }
  const std::size_t taken = n > 0 ? static_cast<std::size_t>(n) : 0;
  ring_.consume(taken);
  if (taken > 0 && refused_) {
    refused_ = false;
    sender_.end_wait();
  }
  if (ring_.used() > 0) staged_ticks_ = os::ticks();
  if (taken == wanted) return written::all;
  if (!blocking_ && !(n < 0 && code == EINTR)) {
    full_ = true;
    sender_.watch(fd_, number_);
  }
  return written::some;
}

void outgoing::leave_to_sender(std::int64_t due_ns) {
  due_ns_.store(due_ns);
  sender_.staged(due_ns);
}

bool outgoing::flush() {
  if (!pending_.load(std::memory_order_relaxed)) return true;
  std::unique_lock lock(lock_);
  // A writer takes along what is there.
  if (writing_ || ring_.used() == 0 || lost_.load(std::memory_order_relaxed)) return true;
  writing_ = true;
  full_ = false;  // as we know; trying costs no more than asking
  write_staged(lock);
  return ring_.used() == 0;
}

void outgoing::writable() {
  const std::lock_guard lock(lock_);
  full_ = false;
  // Should the caller of wait_for_room() forget to flush, the next wait ends at once.
  if (ring_.used() > 0 && !writing_) due_ns_.store(0);
}

void outgoing::lose(const std::string& why) {
  const std::lock_guard lock(lock_);
  lose_locked(why);
}

void outgoing::lose_locked(const std::string& why) {
  if (lost_.load(std::memory_order_relaxed)) return;
  trouble_ = why;
  lost_.store(true, std::memory_order_relaxed);
  due_ns_.store(never_ns);
  sender_.forget(fd_);
  // Ends our receiver's wait too: it reads the end of the stream and reports the loss.
  ::shutdown(fd_, SHUT_RDWR);
  if (!writing_) {
    ring_.consume(ring_.used());
    pending_.store(false, std::memory_order_relaxed);
  }
  sender_.end_wait();
}

std::string outgoing::trouble() const {
  const std::lock_guard lock(lock_);
  return trouble_;
}

void outgoing::add_to(transport::traffic& t) const noexcept {
  t.messages_out += messages_.load(std::memory_order_relaxed);
  t.bytes_out += bytes_.load(std::memory_order_relaxed);
  t.writes += writes_.load(std::memory_order_relaxed);
}

}  // namespace strata::net::tcp
