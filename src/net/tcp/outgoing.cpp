// SPDX-License-Identifier: Apache-2.0
#include "net/tcp/outgoing.hpp"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
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

// What this thread has corked.
struct cork_of_thread {
  const outgoing* at = nullptr;
  std::span<const std::byte> lasting;
  bool holds = false;  // messages there, and with them the role of the writer
};
thread_local cork_of_thread corked_here;

bool is_within(std::span<const std::byte> part, std::span<const std::byte> whole) noexcept {
  const std::less_equal<> not_after;
  return not_after(whole.data(), part.data()) &&
         not_after(part.data() + part.size(), whole.data() + whole.size());
}

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
  const bool is_held = can_be_held(bytes, head, body);
  if (!is_held) make_room_for(bytes, lock);
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
  if (is_held) return hold(h, head, body, now_ticks, lock);
  const bool corked = stays_corked(bytes);
  if (!corked && should_write(bytes, now_ticks)) return write_now(h, head, body, lock);
  stage(h, head, body);
  burst_.sent(now_ticks);
  if (!corked && due_ns_.load() == never_ns && !writing_ && !full_) {
    leave_to_sender(blocking_ ? 0 : os::now_ns() + deadline_ns_);
  }
  return send_outcome::staged;
}

// For a message that is not held. What this thread holds goes before it.
void outgoing::make_room_for(std::size_t bytes, std::unique_lock<std::mutex>& lock) {
  if (holds_here()) (void)let_go(lock);
  if (bytes <= ring_.room() || !may_write()) return;
  writing_ = true;
  write_staged(lock);
}

send_outcome outgoing::hold(const header& h, std::span<const std::byte> head,
                            std::span<const std::byte> body, std::uint64_t now_ticks,
                            std::unique_lock<std::mutex>& lock) {
  writing_ = corked_here.holds = true;
  due_ns_.store(never_ns);
  held_.add(h, head, body, ring_);
  burst_.sent(now_ticks);
  if (ring_.used() < corked_bytes && !held_.is_full()) return send_outcome::staged;
  return let_go(lock);
}

send_outcome outgoing::write_now(const header& h, std::span<const std::byte> head,
                                 std::span<const std::byte> body,
                                 std::unique_lock<std::mutex>& lock) {
  writing_ = true;
  if (sizeof h + h.length >= gather_bytes_min) {
    held_.add(h, head, body, ring_);
    write_held(lock);
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
  return corked_here.at == this && aggregate_ && may_write() && bytes >= gather_bytes_min &&
         ring_.used() + bytes < corked_bytes && ring_.room() >= bytes + message_bytes_max;
}

// Others' messages may only come behind those that are held.
bool outgoing::can_be_held(std::size_t bytes, std::span<const std::byte> head,
                           std::span<const std::byte> body) const noexcept {
  return corked_here.at == this && aggregate_ && !lost_.load(std::memory_order_relaxed) &&
         head.size() <= held_messages::head_bytes_max && is_within(body, corked_here.lasting) &&
         ring_.room() >= bytes + message_bytes_max &&
         // The last piece, however small, leaves with those before it.
         (holds_here() ? ring_.end() == held_.end() : bytes >= gather_bytes_min && may_write());
}

bool outgoing::holds_here() const noexcept { return corked_here.at == this && corked_here.holds; }

void outgoing::cork(std::span<const std::byte> lasting) noexcept {
  STRATA_CHECK(!corked_here.holds, number_);
  corked_here = {.at = this, .lasting = lasting};
}

void outgoing::uncork() noexcept {
  std::unique_lock lock(lock_);
  if (holds_here()) (void)let_go(lock);
  corked_here.at = nullptr;
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

// The end of holding messages back, and of the role of the writer that came with it.
send_outcome outgoing::let_go(std::unique_lock<std::mutex>& lock) {
  corked_here.holds = false;
  const std::uint64_t end = held_.end();
  write_held(lock);
  write_staged(lock);
  if (lost_.load(std::memory_order_relaxed)) return send_outcome::lost;
  return ring_.begin() >= end ? send_outcome::sent : send_outcome::staged;
}

// The writer's: writes what is staged before the messages that are held, and them. Others stage
// behind them meanwhile.
void outgoing::write_held(std::unique_lock<std::mutex>& lock) {
  const std::span<const std::byte> before =
      ring_.data().first(static_cast<std::size_t>(held_.begin() - ring_.begin()));
  const std::size_t bytes = before.size() + static_cast<std::size_t>(held_.end() - held_.begin());
  pending_.store(true, std::memory_order_relaxed);
  due_ns_.store(never_ns);
  lock.unlock();
  held_messages::parts space;
  const std::span<iovec> parts = held_.gather(before, space);
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  const ssize_t n = ::sendmsg(fd_, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  const int code = errno;
  lock.lock();

  const std::size_t gone = n > 0 ? static_cast<std::size_t>(n) : 0;
  held_.fill(ring_, gone - std::min(gone, before.size()));
  held_.clear();
  (void)wrote(n, bytes, code);
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
      if (ring_.used() > 0 && !lost_.load(std::memory_order_relaxed)) leave_to_sender(0);
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

bool outgoing::release() {
  const std::lock_guard lock(lock_);
  STRATA_CHECK(lost_.load(std::memory_order_relaxed), number_);
  if (writing_) return false;
  fd_ = -1;
  ring_.give_back_memory();
  return true;
}

bool outgoing::restart(int fd) {
  const std::lock_guard lock(lock_);
  STRATA_CHECK(lost_.load(std::memory_order_relaxed), number_);
  if (writing_) return false;
  ring_.consume(ring_.used());
  fd_ = fd;
  next_sequence_ = 0;
  full_ = refused_ = false;
  trouble_.clear();
  due_ns_.store(never_ns);
  pending_.store(false, std::memory_order_relaxed);
  lost_.store(false, std::memory_order_relaxed);
  return true;
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
