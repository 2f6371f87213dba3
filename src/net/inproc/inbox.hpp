// SPDX-License-Identifier: Apache-2.0
// What has come to one of several nodes within a process, in the order in which it came, and who
// sleeps until something does: its receiver, and beside it perhaps a stand-in. One lock guards all
// of it, so nothing that comes is slept over.
//
// Each sender has credits, in bytes: what lies here of it, or is being handed over, is no more than
// that, or one message. (Partner: whoever was refused is told when half of them are free.)
#pragma once
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "net/transport.hpp"

namespace strata::net::inproc {

class inbox {
 public:
  struct item {
    header h;
    std::vector<std::byte> payload{};
    std::string ended_by{};  // not empty: that node has, and this is no message
  };

  inbox(node_id nodes, std::size_t credits_bytes);

  // ---- any other node ----
  // Takes the sequence number from here.
  [[nodiscard]] send_outcome put(header h, std::span<const std::byte> head,
                                 std::span<const std::byte> body);
  // `peer` has ended, which is said behind all that it has put here.
  void put_end(node_id peer, const std::string& why);
  // A peer that refused has room again.
  void tell_sender();

  // ---- the node whose inbox it is ----
  void open();
  // It ends: nothing is taken any more. Whoever was refused is to be told, by number.
  [[nodiscard]] std::vector<node_id> close();
  // At most so many, into `all`, which is empty.
  void take(std::vector<item>& all, std::size_t messages_max);
  // They have been handed over. Who was refused, and is to be told that there is room.
  [[nodiscard]] std::vector<node_id> give_back(std::span<const item> all);

  void wait_for_messages(std::int64_t timeout_ns);
  void wake_receiver();
  void wait_for_room(std::int64_t timeout_ns);
  void attended();
  [[nodiscard]] bool unattended();
  [[nodiscard]] transport::stand_in_outcome stand_in(os::futex_word& own, std::uint32_t expected);
  void rouse_stand_in();
  void dismiss_stand_in();
  // Of threads that slept here.
  [[nodiscard]] std::uint64_t wakes() const;

 private:
  struct sender {
    std::size_t bytes = 0;
    std::uint32_t next_sequence = 0;
    bool refused = false;
  };
  // With the mutex: somebody is to look.
  void call_somebody();
  void call_somebody_for_rest();
  void wait(std::unique_lock<std::mutex>& lock, std::condition_variable& until,
            std::int64_t timeout_ns, bool& called);

  const std::size_t credits_bytes_;
  mutable std::mutex mutex_;
  // Neither yet: nothing is taken, but who has ended meanwhile is to be known.
  bool is_open_ = false, is_closed_ = false;
  std::deque<item> items_;
  std::vector<sender> senders_;  // by node

  // All with the mutex. Called: since it went to sleep, or before, and it has not seen that yet.
  std::condition_variable receiver_, stand_in_, room_;
  bool receiver_called_ = false, room_called_ = false;
  bool has_stand_in_ = false, stand_in_called_ = false, stand_in_dismissed_ = false;
  unsigned attendants_ = 0;
  std::uint64_t wakes_ = 0;
};

}  // namespace strata::net::inproc
