// SPDX-License-Identifier: Apache-2.0
// What leaves for one peer, in order: numbered messages, through a staging buffer, into a socket.
//
// Any thread may send. The lock is held for bookkeeping and copies, never while bytes are written;
// whoever writes into the socket holds the role of the writer instead, and what others stage in the
// meantime the writer takes along. So under contention messages collect by themselves.
//
// Invariants, whenever the lock is free:
//  - the messages in the ring and those in the socket are the numbered sequence without a gap;
//  - a ring with content has somebody who will empty it: the writer, or the sender thread, which
//    was told a deadline (due_ns) or waits for the full socket, or whoever has corked;
//  - who holds messages back uncopied, their places in the ring still empty, is the writer.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>

#include "net/byte_ring.hpp"
#include "net/tcp/held_messages.hpp"
#include "net/tcp/options.hpp"
#include "net/tcp/sender_wait.hpp"
#include "net/transport.hpp"

namespace strata::net::tcp {

class outgoing {
 public:
  // The socket stays open for as long as this lives, or until restart() or release(). `number` is
  // what writable() is called for.
  outgoing(int fd, std::uint32_t number, const options& o, sender_wait& sender);

  send_outcome try_send(header h, std::span<const std::byte> head, std::span<const std::byte> body);

  // In between a large message of this thread may stay here until others are behind it: where its
  // body is part of `lasting`, which stays as it is until then, it is not even copied.
  void cork(std::span<const std::byte> lasting) noexcept;
  void uncork() noexcept;

  // The sender thread's. False: the socket is full.
  bool flush();
  // The socket takes bytes again. The sender thread's.
  void writable();
  // When what is staged must be written by the sender thread; never_ns: not by it.
  [[nodiscard]] std::int64_t due_ns() const noexcept { return due_ns_.load(); }

  // Nothing goes out any more, and nobody waits for room. Any thread. `why` is kept if it is first.
  void lose(const std::string& why);
  // It has been lost; from now on nobody uses the socket. False: a thread is just writing into it,
  // and nothing has happened.
  [[nodiscard]] bool release();
  // It has been lost; from now on messages go into another socket, as over a new connection. False:
  // a thread is just writing into the old one, and nothing has happened.
  [[nodiscard]] bool restart(int fd);
  // Why sending failed; empty: it has not.
  [[nodiscard]] std::string trouble() const;

  void add_to(transport::traffic& t) const noexcept;

 private:
  enum class written : std::uint8_t { all, some, failed };

  // Whether a thread that sends can become the writer.
  [[nodiscard]] bool may_write() const noexcept {
    return !blocking_ && !writing_ && !full_ && !lost_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] bool stays_corked(std::size_t bytes) const noexcept;
  [[nodiscard]] bool can_be_held(std::size_t bytes, std::span<const std::byte> head,
                                 std::span<const std::byte> body) const noexcept;
  [[nodiscard]] bool should_write(std::size_t bytes, std::uint64_t now_ticks);
  // The steps of try_send(), with the lock.
  void make_room_for(std::size_t bytes, std::unique_lock<std::mutex>& lock);
  send_outcome hold(const header& h, std::span<const std::byte> head,
                    std::span<const std::byte> body, std::uint64_t now_ticks,
                    std::unique_lock<std::mutex>& lock);
  send_outcome write_now(const header& h, std::span<const std::byte> head,
                         std::span<const std::byte> body, std::unique_lock<std::mutex>& lock);
  void stage(const header& h, std::span<const std::byte> head, std::span<const std::byte> body);
  [[nodiscard]] bool holds_here() const noexcept;
  send_outcome let_go(std::unique_lock<std::mutex>& lock);
  void write_held(std::unique_lock<std::mutex>& lock);
  void write_staged(std::unique_lock<std::mutex>& lock);
  written wrote(ssize_t n, std::size_t wanted, int code);
  void leave_to_sender(std::int64_t due_ns);
  void lose_locked(const std::string& why);

  int fd_;  // with the lock, or the role of the writer
  const std::uint32_t number_;
  const bool blocking_;
  const bool aggregate_;
  const std::int64_t deadline_ns_;
  const std::uint64_t deadline_ticks_;
  sender_wait& sender_;

  mutable std::mutex lock_;
  byte_ring ring_;
  held_messages held_;  // the writer's
  std::uint32_t next_sequence_ = 0;
  bool writing_ = false;  // somebody holds the role of the writer
  bool full_ = false;     // the socket refused bytes; the sender is told when it takes some again
  bool refused_ = false;  // a sender was told would_block since there was room last
  burst burst_;
  std::uint64_t staged_ticks_ = 0;  // when the ring was empty last
  std::string trouble_;

  std::atomic<std::int64_t> due_ns_{never_ns};
  std::atomic<bool> pending_{false};  // the ring has content
  std::atomic<bool> lost_{false};
  std::atomic<std::uint64_t> messages_{0};
  std::atomic<std::uint64_t> bytes_{0};
  std::atomic<std::uint64_t> writes_{0};
};

}  // namespace strata::net::tcp
