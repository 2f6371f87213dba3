// SPDX-License-Identifier: Apache-2.0
// What carries messages between nodes: shared memory, TCP, the simulation. A transport moves whole
// messages between this node and its peers; it knows nothing of what they mean.
//
// Threads: try_send() may be called by any number of threads. poll() is called by one thread at a
// time (whoever holds the inbox); wait_for_messages() by one thread, the receiver, while others may
// poll; stand_in() by one more at a time, whom any other may rouse; wait_for_room() and flush() by
// one thread, the sender. No call but the two waits and stand_in() ever blocks.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "net/joint_copies.hpp"
#include "net/shelves.hpp"
#include "net/transfers.hpp"
#include "net/wire.hpp"
#include "os/futex.hpp"

namespace strata::net {

struct capabilities {
  bool reliable;  // nothing is lost, doubled or reordered between two nodes
  const char* name;
  bool looks_cheaply = false;  // a poll() that finds nothing makes no system call
  bool may_break = false;      // a peer may be unreachable though it lives: on_lost() is no proof
};

enum class send_outcome {
  sent,         // the message is the transport's now; it goes out without a flush(), as long as the
                // node has a thread that polls, or a sender in wait_for_room()
  staged,       // the same, but it goes out at the next flush() of that peer at the latest
  would_block,  // the peer's credits are used up; nothing has happened. wait_for_room() tells when
                // to try again
  lost,         // the peer is gone; the message would never arrive
};

// Who gets what arrives. Called from within poll().
class receiver {
 public:
  // payload is valid during the call only.
  virtual void on_message(const header& h, std::span<const std::byte> payload) = 0;
  // The peer is gone, once; `why` is for people ("closed the connection", "sent a malformed
  // header"). Nothing of it arrives afterwards.
  virtual void on_lost(node_id peer, const std::string& why) = 0;
  // Of what a transport's transfers() has begun: it is over. Not whole: `peer` is lost; its
  // on_lost() came before or comes after, or does not come where it was dropped.
  virtual void on_arrived(node_id /*peer*/, std::uint64_t /*number*/, bool /*whole*/) {}
  virtual void on_given(node_id /*peer*/, std::uint64_t /*own_number*/, bool /*whole*/) {}

 protected:
  ~receiver() = default;
};

inline constexpr std::int64_t wait_forever_ns = -1;

class transport {
 public:
  virtual ~transport() = default;

  [[nodiscard]] virtual capabilities about() const noexcept = 0;

  // Whether messages for `peer` can go this way.
  [[nodiscard]] virtual bool reaches(node_id peer) const noexcept = 0;

  // Copies the message, whose payload is the concatenation of head and body; h.length and
  // h.sequence are set by the callee. Messages of one thread to one peer arrive in order.
  [[nodiscard]] virtual send_outcome try_send(node_id peer, header h,
                                              std::span<const std::byte> head,
                                              std::span<const std::byte> body) = 0;

  // While a thread has corked a peer its large messages for it may be collected, to leave in fewer
  // and larger writes: see net::corked, for a loop that sends the pieces of something. Bodies that
  // are part of `lasting` stay as they are until uncork(), so they need no copy until then.
  virtual void cork(node_id, std::span<const std::byte> /*lasting*/) noexcept {}
  virtual void uncork(node_id) noexcept {}

  // Pushes staged messages for `peer` on their way as far as possible without blocking. False: some
  // are left; call again after wait_for_room().
  [[nodiscard]] virtual bool flush(node_id peer) = 0;

  // Hands over at most `messages_max` messages that have arrived; returns how many it handed over.
  virtual std::size_t poll(receiver& r, std::size_t messages_max) = 0;

  // Sleeps until poll() has something to do, wake_receiver() is called, or the time is over. May
  // return early for no reason. A message that arrived before the call is not slept over.
  virtual void wait_for_messages(std::int64_t timeout_ns) = 0;
  virtual void wake_receiver() noexcept = 0;

  // One more thread may sleep here, in the receiver's stead: what arrives wakes this one only, and
  // it is to poll; it attends from then on, and ends that by unattended(). It stays until then;
  // until `own` no longer holds `expected`, after which others wake whoever sleeps on it within
  // this process, and call rouse_stand_in(); or until dismiss_stand_in(), which is for good. May
  // return early for no reason.
  enum class stand_in_outcome { not_here, left, is_to_poll };
  virtual stand_in_outcome stand_in(os::futex_word& /*own*/, std::uint32_t /*expected*/) noexcept {
    return stand_in_outcome::not_here;
  }
  virtual void rouse_stand_in() noexcept {}
  virtual void dismiss_stand_in() noexcept {}

  // Sleeps until a peer that refused has room again, wake_sender() is called, or the time is over.
  // Who is refused while another thread sleeps here, and wants it to know, calls wake_sender().
  virtual void wait_for_room(std::int64_t timeout_ns) = 0;
  virtual void wake_sender() noexcept = 0;

  // Somebody else polls often for the time being: the receiver need not be woken. On the way back,
  // if unattended() says true, the caller polls once more, so nothing is slept over.
  virtual void attended() noexcept {}
  [[nodiscard]] virtual bool unattended() noexcept { return false; }

  // The peer is known to be gone: nothing is sent to it or taken from it any more. Any thread.
  // on_lost() is not called for it.
  virtual void drop(node_id) noexcept {}

  // This node has left a job that goes on: all that it has said has been heard, and nobody has
  // anything to say to it. What memory it shares with others goes when this one does. By who may
  // poll.
  virtual void has_left() noexcept {}

  // With what poll() needs, some times while limit_ns pass: a peer that the network has carried
  // nothing to for so long, though something was sent, is lost, whatever it says itself. Of
  // transports that do not find that out in poll().
  virtual void look_for_silence(receiver&, std::int64_t /*now_ns*/, std::int64_t /*limit_ns*/) {}

  // Null: everything travels in messages.
  [[nodiscard]] virtual transfers* transfers_of_peers() noexcept { return nullptr; }

  // Null: no peer can take anything without this node's help.
  [[nodiscard]] virtual shelves* shelves_of_host() noexcept { return nullptr; }

  // Null: peers do not reach each other's memory.
  [[nodiscard]] virtual joint_copies* copies_of_host() noexcept { return nullptr; }

  // Bytes and messages so far, for statistics and tests.
  struct traffic {
    std::uint64_t messages_out = 0, bytes_out = 0, messages_in = 0, bytes_in = 0;
    std::uint64_t writes = 0;  // system calls or ring pushes that carried them
    std::uint64_t wakes = 0;   // of threads that slept in one of the waits
  };
  [[nodiscard]] virtual traffic counted() const noexcept = 0;
};

}  // namespace strata::net
