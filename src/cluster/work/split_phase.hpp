// SPDX-License-Identifier: Apache-2.0
// EARTH's operations on other nodes: SYNC, INCR_SYNC, PUT_SYNC, GET_SYNC, block moves, INVOKE,
// DROP_IN. Data is visible before the signal that announces it, because a node handles the messages
// of another one after the other. (Requirements E5-E7, E10.)
#pragma once
#include <atomic>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "cluster/words/codec.hpp"
#include "cluster/words/surroundings.hpp"
#include "cluster/work/calls_away.hpp"
#include "strata/detail/remote.hpp"
#include "strata/error.hpp"
#include "strata/global_ptr.hpp"

namespace strata::cluster {

[[nodiscard]] node_left_error has_left(node_id node);

class split_phase final : public detail::remote_nodes {
 public:
  split_phase(mailer& mail, local_node& here, work_counts& counts);

  // ---- on this node ----
  void signal(detail::global_address slot) override;
  void increment(detail::global_address slot, std::uint32_t more) override;
  void put(detail::global_address to, const void* value, std::size_t bytes,
           detail::global_address slot) override;
  void get(detail::global_address from, void* into, std::size_t bytes,
           detail::global_address slot) override;
  void invoke(detail::worker& w, node_id node, detail::task* token) override;
  void call(detail::worker& w, node_id node, detail::task& c,
            std::span<const std::byte> more) override;
  void drop_in(detail::global_address box, const void* item, std::size_t bytes) override;
  void give_back(detail::global_address home, const std::exception_ptr& error, const void* value,
                 std::size_t bytes) override;

  // Before a task that was taken for another node is packed: makes its objects into bytes. False:
  // their functions have thrown, as if it had, which has been told to whoever waits for it.
  [[nodiscard]] bool prepare(detail::task& t, detail::worker& w);
  // A task has been packed and goes to another node. A token is gone afterwards; a call stays where
  // it is and is remembered until its result is here.
  void goes_away(detail::task& t, node_id to, detail::worker& frames, calls_away::trip how);
  // A call that was said to go to this node itself, because nobody knew where: it is taken to `to`;
  // or nobody took it, and it is made here unless it has been lost meanwhile (false).
  void goes_on(detail::task& t, node_id to) { away_.goes_on(t, to); }
  [[nodiscard]] bool comes_back(detail::task& t) { return away_.comes_back(t); }
  // Whose results are awaited.
  [[nodiscard]] std::size_t awaited_calls() { return away_.count(); }
  // Unpacks one of this node's own that nobody has got; null: a call that has been lost meanwhile.
  [[nodiscard]] detail::task* come_back(detail::worker& w, reader& in);
  // A node is lost, and with it the job: every call that is away throws this, and so does from now
  // on whatever the program has for another node. With the inbox.
  void lose(const std::exception_ptr& error);

  // The node has left the job: what was called there at the last moment throws, and what was asked
  // of it is awaited no more.
  void on_left(node_id node);
  // Calls or data are still to come from other nodes.
  [[nodiscard]] bool awaits_something();

  // For people: calls and data that other nodes owe us.
  [[nodiscard]] std::string describe_waits();

  // ---- from other nodes ----
  // False: not one of ours. Throws malformed; misuse_error when the program has sent a signal too
  // many.
  bool on_message(node_id from, kind k, reader r);
  // The next token of another node. Null: there is no memory for it, and whoever waits for it has
  // been told. Throws malformed.
  [[nodiscard]] detail::task* unpack(detail::worker& w, reader& in);

 private:
  // What was asked of one node and is not yet here, with its heads: what that one must have room
  // for when it answers.
  static constexpr std::size_t window_bytes = std::size_t{4} << 20;
  struct wanted {
    std::uint64_t from, into, slot;
    std::uint64_t bytes;
  };
  struct requests {
    std::mutex mutex;
    std::size_t in_flight = 0;
    std::deque<wanted> waiting;
  };
  // An item of a mailbox too large for one message.
  struct large_item {
    std::mutex sending;
    std::vector<std::byte> arriving;
    bool is_refused = false;  // for want of memory: what comes of it is dropped, until the next one
  };

  // For a handler, which must not wait.
  void post(node_id to, kind k, std::span<const std::byte> head,
            std::span<const std::byte> body = {});
  // For the program, which waits while the receiver cannot keep up.
  void send(node_id to, kind k, std::span<const std::byte> head,
            std::span<const std::byte> body = {});
  // In messages with these heads: head_of(offset, bytes).
  template <class HeadOf>
  void post_pieces(node_id to, kind k, std::span<const std::byte> part, HeadOf&& head_of);
  template <class HeadOf>
  void send_pieces(node_id to, kind k, std::span<const std::byte> all, HeadOf&& head_of);
  // For the program: what it has for that node can get there. Throws node_lost_error.
  void check_is_there(node_id node) const;
  [[nodiscard]] bool is_known(node_id node) const;
  // What another node has named a node of the job: there is one, or was. Throws malformed.
  void check_is_known(node_id node) const;
  // What unpack() makes of it can give its result back.
  void check_home(reader token) const;
  // For want of memory, which is the exception that is being handled: who waits for it is told.
  void cannot_begin(reader token);
  // What a call has returned or thrown. For a handler as well.
  void post_result(detail::global_address home, const std::exception_ptr& error,
                   std::span<const std::byte> value);
  requests& requests_to(node_id node);
  large_item& large_item_of(node_id node);
  // Because of something that `from` has sent.
  void deliver_signal(detail::global_address slot, node_id from);
  // For the program: what it is about to send makes another node signal this one.
  void wait_for_room_of(detail::global_address slot);
  void request(node_id node, const wanted& w);
  // With r's lock: of what waits, as much as there is room for.
  void ask_for_waiting(node_id node, requests& r) noexcept;
  // What another node has asked for.
  void answer(node_id to, const wanted& w);
  void on_put(reader& r, bool answers, node_id from);
  void on_get(reader& r, node_id from);
  void on_invoke(reader& r);
  void on_drop_in(reader& r, node_id from);
  void put_into_mailbox(void* box, std::span<const std::byte> item, node_id from);
  void on_returned(reader& r);

  mailer& mail_;
  local_node& here_;
  work_counts& counts_;
  calls_away away_;
  std::exception_ptr loss_;  // the first
  // Release: loss_. Partner: check_is_there().
  std::atomic<bool> is_lost_{false};
  // Of each node that was ever asked, or sent a large item: in a large job, few.
  std::mutex tables_mutex_;
  std::unordered_map<node_id, requests> requests_;
  std::unordered_map<node_id, large_item> large_items_;
};

}  // namespace strata::cluster
