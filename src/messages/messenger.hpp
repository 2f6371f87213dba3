// SPDX-License-Identifier: Apache-2.0
// Messages of one node: finds the endpoint, takes the path that its place allows, keeps to the room
// that the target has. (Requirements P5, P6, P9 to P14.)
//
// Within the process a message goes to the waiting receive, or waits with the target's messages:
// copied while that has room, else where its sender has it. To another node it goes as it is up to
// eager_bytes_max, or eager_bytes_near, against room of a window that the receiver gives back as it
// receives; larger ones are offered, and fetched by the receiver once they are matched: out of the
// sender's memory within a host, in one transfer where the network does those well, or in pieces.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "cluster/words/codec.hpp"
#include "cluster/words/surroundings.hpp"
#include "messages/best_follower.hpp"
#include "messages/common_waits.hpp"
#include "messages/directory.hpp"
#include "messages/fetch.hpp"
#include "messages/followed.hpp"
#include "messages/lane_table.hpp"
#include "messages/large_values.hpp"
#include "messages/match_list.hpp"
#include "messages/named_objects.hpp"
#include "messages/port.hpp"
#include "messages/process_memory.hpp"
#include "messages/request.hpp"
#include "messages/telling.hpp"
#include "messages/wanted_patterns.hpp"
#include "messages/wire.hpp"
#include "strata/stats.hpp"
#include "strata/stop_token.hpp"

namespace strata::messages {

class messenger final : public cluster::visiting_protocol {
 public:
  messenger() = default;
  ~messenger();
  messenger(const messenger&) = delete;
  messenger& operator=(const messenger&) = delete;

  directory names;
  common_waits waits;
  followed_objects<stop_source> stops;
  followed_objects<strata::detail::best_follower> bests;
  // Shared: a named object may end after its runtime.
  const std::shared_ptr<named_objects> objects = std::make_shared<named_objects>();
  // Shared: so may a call that has been answered.
  const std::shared_ptr<large_value_table> large_values = std::make_shared<large_value_table>();

  // ---- for the program ----
  port& open();
  // how: closed or announced.
  void close(endpoint_id id, port& p, outcome how = outcome::closed);
  // Begins; r has everything that is set before. It may have ended on return.
  void send(request& r);
  void receive(request& r);
  // send() of a message of this process for which a receive waits already, alone and with room for
  // it, as most do: that one ends with it, and nothing is written down for the sender. False, and
  // nothing has happened: it goes by send().
  bool send_to_waiting(endpoint_id source, endpoint_id target, message_tag tag,
                       std::span<const std::byte> bytes) noexcept;
  // False: it has ended, or has been matched and will; or it is a send that waits on another node.
  bool cancel(request& r);
  // Of a send that waits on another node: it is taken back from there, or has been matched, and
  // ends in any case. Otherwise nothing happens. Its caller's alone. See giving_up.cpp.
  void recall(request& r) noexcept;
  // Whether another node may end it.
  [[nodiscard]] bool is_far(const request& r) const noexcept {
    return mail_ != nullptr && (!r.other_end() || r.other_end().node() != self_);
  }
  // Throws misuse_error for any_endpoint_on() a node that this job cannot have.
  void check_source(endpoint_id from) const {
    if (from.is_any_on_node() && from.node() >= nodes_) [[unlikely]]
      refuse_source(from.node());
  }
  // All by which blocks of this node's memory come or go. For the registration of memory.
  [[nodiscard]] std::vector<net::transfers*> transfers_here() const {
    return mail_ == nullptr ? std::vector<net::transfers*>() : mail_->all_transfers();
  }
  // For who is about to wait for r: takes in what comes from near by until r has ended with that,
  // or nothing more has come for a moment.
  void look_for(const request& r) noexcept;
  // For a program that asks again and again whether something has come, so that its worker looks at
  // no messages between two tasks: looks in its place, one time in 16.
  void look_now_and_then() const noexcept;
  // See endpoint::flush().
  void flush(endpoint_id to);
  // Never waits; says nothing to a node that has left.
  void tell(net::node_id to, const told_head& head);
  // Asks an object's node, and suspends until it has answered: it is there. Throws
  // resource_ended_error, node_left_error, node_lost_error, misuse_error in a fiber.
  void await_answer(home_answer& a, net::node_id home, const told_head& question);
  // Of this node.
  [[nodiscard]] bool is_open(endpoint_id id) const noexcept;
  // This node is about to leave the job.
  [[nodiscard]] bool is_leaving() const noexcept {
    return mail_ != nullptr && mail_->members().of(self_) == cluster::standing::leaving;
  }
  // See await_members_other_than().
  [[nodiscard]] std::optional<std::vector<node_id_t>> await_other_members(
      std::span<const node_id_t> known, std::int64_t deadline_ns);
  std::optional<message_info> probe(port& p, endpoint_id id, const pattern& wanted);
  [[noreturn]] void throw_loss() const;
  [[nodiscard]] const std::exception_ptr& loss() const noexcept { return loss_; }
  [[nodiscard]] message_statistics counted();

  // ---- for the runtime ----
  // It ends: nobody runs in it any more, and there is no other node. Who waits in it is not told,
  // as nobody will run him, but OS threads are; what is in progress has ended with outcome::over,
  // and whatever begins from now on throws misuse_error. Its stacks still exist.
  void retire();
  // After that, and after the workers. Open endpoints keep it, the last of them deletes it.
  static void let_go(std::unique_ptr<messenger> m);

  // ---- cluster::visiting_protocol ----
  void join(cluster::mailer& mail, cluster::local_node& here, cluster::work_counts& counts,
            const std::vector<bool>& same_host) override;
  bool on_message(net::node_id from, cluster::kind k, cluster::reader r) override;
  void on_arrived(net::node_id from, std::uint64_t number, bool whole) override;
  void on_given(net::node_id to, std::uint64_t own_number, bool whole) override;
  void on_coming(net::node_id node, bool same_host) override;
  void on_left(net::node_id node) override;
  void on_leaving() override;
  void members_have_changed() noexcept override;
  void on_congestion() noexcept override;
  void on_room_made() override;
  [[nodiscard]] bool holds_something() override;
  void hand_over() override;
  void on_lost(const std::exception_ptr& error) override;
  [[nodiscard]] std::string describe_waits() override;

  // It has not left the job, and can be there at all.
  [[nodiscard]] bool has(net::node_id node) const noexcept {
    return mail_ == nullptr ||
           (node < mail_->nodes() && mail_->members().of(node) != cluster::standing::left);
  }
  // Where the name with this hash is at home now.
  [[nodiscard]] net::node_id home_of(std::size_t hash) const noexcept;

 private:
  // A message on its way into a port: where its bytes are.
  struct delivery {
    const message_info* info = nullptr;
    std::span<const std::byte> bytes{};       // those of sender, if there is one: set in deliver()
    std::vector<std::byte>* whole = nullptr;  // may be taken
    bool is_kept = false;                     // as in arrival
    request* sender = nullptr;                // of this process; ends with the match if it has to
    const arrival::offered* offer = nullptr;  // or: it is still with a sender on another node
    std::uint32_t charge = 0;
  };
  struct path_counters {
    std::atomic<std::uint64_t> read{0}, helped{0}, moved{0}, pulled{0}, bytes_copied{0};
  };

  // What ends, linked by what it has waited by: so nobody is forgotten for want of memory.
  using ended_requests = match_list<request, 0>;
  // Begins with the reason that throw_loss() gives: everybody who waits, or will. Takes what waits
  // for a match or for room out of where it does.
  [[nodiscard]] ended_requests take_waiting(const std::exception_ptr& error);
  [[noreturn]] static void refuse_source(net::node_id node);
  // Throws misuse_error where its node is none of this job.
  void check_target(endpoint_id to) const;
  // Nothing more will come from there: a node that has left the job. With the lock of the port that
  // waits, so that on_left() finds who began to wait before.
  [[nodiscard]] bool is_gone(endpoint_id source) const noexcept {
    return source && source.node() != self_ && source.node() < nodes_ && !has(source.node());
  }
  // The rest of receive(), with the lock of r's port, which it gives back.
  void receive_locked(request& r);
  // done: it waits there, or is received. Otherwise how the endpoint has ended. Throws bad_alloc
  // for one of this process alone.
  outcome deliver(endpoint_id target, delivery& d);
  // What it comes to there, with the port's lock.
  struct entered {
    outcome how = outcome::done;
    request* matched = nullptr;  // out of the port, to be completed
    room_notice notice{};
    bool gets_full = false;  // an account there
  };
  entered enter(port& p, endpoint_id target, delivery& d);
  void keep(port& p, delivery& d);
  // The message has been matched; ends the receive, now or later.
  void complete(delivery& d, request& receive, bool in_handler);
  void copy_into(request& receive, delivery& d);
  void count(port& p, const delivery& d, const request& receive) noexcept;
  port::account& account_of(port& p, net::node_id node);
  static void keeps(port& p, port::account& a, std::uint32_t kept) noexcept;
  static room_notice notice_for(port& p, net::node_id node, bool somebody_waits) noexcept;
  // What is taken out of the port waits there no longer: its room is to be given back.
  [[nodiscard]] room_notice give_charge_back(port& p, const arrival& a);
  void post_notice(endpoint_id target, const room_notice& n);

  // To whom it is news that somebody asks for a message that is not there; `stays`: and is among
  // those who wait.
  [[nodiscard]] news news_for(port& p, const pattern& wanted, bool stays);
  void post_news(endpoint_id target, const news& n);

  // What a port seeks among what waits on other nodes, and the other end of that: seeking.cpp.
  // All of what is waited for there; nothing if that is not due.
  [[nodiscard]] seek seek_all(port& p, net::node_id node);
  [[nodiscard]] std::vector<seek> seeks_for(port& p, const pattern& wanted, bool stays);
  static void begin_seek(port& p, const seek& s) noexcept;
  void post_seek(endpoint_id target, const seek& s);
  // Without the port's lock.
  void seek_for_all(port& p, endpoint_id target, net::node_id node);
  [[nodiscard]] static bool has_sought(const port& p, net::node_id node) noexcept {
    return node < p.accounts.size() && p.accounts[node].seeks != nullptr;
  }
  // With the lane's lock. False: nothing of it waits.
  bool send_out_of_turn(lane& l, std::span<const pattern> asked, wanted_patterns& wanted);
  void tell_of_news(lane& l);

  void send_within(request& r);
  void send_to_node(request& r);
  // With the lane's lock. What travels of a send, for which room has been taken: nothing, since
  // there is none; its envelope alone, an offer; or all of it, which ends it. Or its envelope
  // without any room, since its receiver has sought it.
  enum class load { nothing, envelope, everything, sought };
  [[nodiscard]] load take_room(lane& l, const request& r) noexcept;
  // With the lane's lock: it waits until less is queued for its node, see crowding.cpp.
  bool is_held_back(lane& l) noexcept;
  void transmit(lane& l, request& r, load what);
  std::vector<request*> send_waiting(lane& l);
  void close_lane(endpoint_id target, outcome how);
  void refuse(net::node_id sender, endpoint_id target, std::uint64_t offer, end_word how);
  void refuse(net::node_id sender, endpoint_id target, std::uint64_t offer, outcome how) {
    refuse(sender, target, offer,
           how == outcome::announced ? end_word::announced : end_word::closed);
  }

  void begin_fetch(const message_info& m, const arrival::offered& offer, request& receive,
                   bool in_handler);
  // Nothing: there is one way, or no memory to choose with.
  using chosen_way = std::optional<fetch_choice::started>;
  chosen_way choose_way(net::node_id node, std::size_t bytes) noexcept;
  // With transfers_mutex_.
  void has_fetched(net::node_id node, const chosen_way& chosen, std::size_t bytes) noexcept;
  // receive.info is set.
  void fetch_by_reading(const arrival::offered& offer, request& receive, std::span<std::byte> into,
                        const chosen_way& chosen);
  // Somebody of that node's, on this host, does nothing but look for messages.
  [[nodiscard]] bool is_attended(net::node_id node) const noexcept;
  void fetch_from_node(const arrival::offered& offer, request& receive, std::span<std::byte> into,
                       const chosen_way& chosen);
  // One of this node's joint copies, taken for a message.
  struct joint {
    net::joint_copies::copy* copy = nullptr;  // null: nobody helps, or all are taken
    std::size_t number = 0;
  };
  // For so many bytes from that node.
  joint take_copy(net::node_id node, std::size_t bytes) noexcept;
  void give_back(const joint& j) noexcept;
  // Reads what is at `offset` of the message, and counts it. False: it cannot be read.
  bool read_part(const arrival::offered& offer, std::size_t offset, std::span<std::byte> into);
  // False: not all of it could be read. Nobody writes there any more in any case.
  bool read_together(const joint& j, const arrival::offered& offer, net::node_id node,
                     std::span<std::byte> into);
  void wait_for_helper(const net::joint_copies::copy& c, const arrival::offered& offer);
  void help_to_copy(net::node_id to, const help_head& head, net::joint_copies::copy& with);
  // With transfers_mutex_.
  void fetch_in_one(std::uint64_t number, fetch& f, net::transfers& way);
  void ask_for_more(std::uint64_t number, fetch& f);
  void give_in_one(net::node_id to, const pull_head& head, open_offer& o);
  // With transfers_mutex_: what a transfer with that node leaves unfinished nobody else will end,
  // since they all have been already; and how it ends. Partners: on_lost(), on_left().
  [[nodiscard]] bool is_settled(net::node_id node) const noexcept {
    return broken_.load(std::memory_order_acquire) || !has(node);
  }
  [[nodiscard]] outcome end_without(net::node_id node) const noexcept {
    return has(node) || broken_.load(std::memory_order_acquire) ? outcome::lost : outcome::left;
  }

  void on_eager(net::node_id from, cluster::reader& r);
  void on_offer(net::node_id from, cluster::reader& r);
  void on_pull(net::node_id from, cluster::reader& r);
  void on_piece(net::node_id from, cluster::reader& r);
  void on_help(net::node_id from, cluster::reader& r);
  void on_fetched(net::node_id from, cluster::reader& r);
  void on_room(net::node_id from, cluster::reader& r);
  void on_closed(net::node_id from, cluster::reader& r);
  void on_seek(net::node_id from, cluster::reader& r);
  void on_sought(net::node_id from, cluster::reader& r);
  void on_recall(net::node_id from, cluster::reader& r);
  void on_told(net::node_id from, cluster::reader& r);

  template <class Head>
  void post(net::node_id to, cluster::kind k, const Head& head,
            std::span<const std::byte> body = {});
  request* take_offer(std::uint64_t number, net::node_id to);

  net::node_id self_ = 0;
  net::node_id nodes_ = 1;           // numbers that a node can have
  cluster::mailer* mail_ = nullptr;  // null: a job of one node
  cluster::local_node* here_ = nullptr;
  cluster::work_counts* counts_ = nullptr;
  // By node: its memory may be readable. Cleared at the first refusal.
  std::unique_ptr<std::atomic<bool>[]> readable_;
  // By node: it may be able to write here. Cleared likewise.
  std::unique_ptr<std::atomic<bool>[]> writes_here_;
  // Which of this node's joint copies are taken.
  std::array<std::atomic<bool>, net::joint_copies::copies_each> copies_{};

  port_table ports_;
  lane_table lanes_;
  // How often members() may have changed: who waits for that waits at its address.
  std::atomic<std::uint32_t> member_changes_{0};

  std::mutex transfers_mutex_;  // of large messages
  std::unordered_map<std::uint64_t, open_offer> offers_;
  // By which others read what is offered: until on_lost().
  revocable_mark offers_mark_;
  std::unordered_map<std::uint64_t, fetch> fetches_;
  std::unordered_map<net::node_id, fetch_choice> choices_;
  std::uint64_t next_number_ = 1;

  // Lanes that wait until less is queued for their node: crowding.cpp.
  std::mutex held_mutex_;  // behind all others; nothing but is_congested() is asked with it
  std::map<net::node_id, std::deque<std::shared_ptr<lane>>> held_;

  std::atomic<bool> broken_{false};
  // Somewhere more may be queued than should be: a send looks whether it is there.
  std::atomic<bool> crowded_{false};
  std::exception_ptr loss_;  // written before broken_

  path_counters paths_;
};

// ---- what each message goes through that is matched: inline, as its receive and its arrival are
// in files of their own ----

// With the port's lock.
inline void messenger::count(port& p, const delivery& d, const request& receive) noexcept {
  const bool moves = receive.looks != nullptr || (d.whole != nullptr && receive.whole != nullptr);
  if (!moves) p.counted.bytes_copied += d.bytes.size();
  if (d.info->source.node() != self_) return;
  ++p.counted.from_here;
  if (moves && !d.is_kept) ++p.counted.handed_over;
  if (!moves && d.is_kept) ++p.counted.copied_twice;
}

inline void messenger::copy_into(request& receive, delivery& d) {
  if (receive.whole == nullptr || receive.looks != nullptr) return receive.take(d.bytes);
  if (d.whole != nullptr) {
    *receive.whole = std::move(*d.whole);
  } else {
    receive.whole->assign(d.bytes.begin(), d.bytes.end());
  }
}

inline void messenger::complete(delivery& d, request& receive, bool in_handler) {
  receive.info = *d.info;
  if (d.offer != nullptr) return begin_fetch(*d.info, *d.offer, receive, in_handler);
  copy_into(receive, d);
  if (d.sender != nullptr) d.sender->finish(outcome::done);
  receive.finish(outcome::done);
}

}  // namespace strata::messages
