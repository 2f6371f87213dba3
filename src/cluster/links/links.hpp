// SPDX-License-Identifier: Apache-2.0
// Messages to every other node: over which transport they go, and where they wait when it has no
// room. (Requirements E12, E13, E19: the sender queue and the sender module.)
//
// The thread that has something to say hands it to the transport itself; only what finds no room is
// queued for the sender thread. Nobody waits while it handles a message, so whatever a node's peers
// do, it goes on receiving: that is why floods and cycles cannot stop for good.
//
// links.cpp: what is posted, and the queue of what finds no room. links_holding.cpp: words that
// keep that queue short. links_members.cpp: nodes that come and leave. links_connections.cpp:
// connections that end before their nodes do.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cluster/links/backlog.hpp"
#include "cluster/links/forwarding.hpp"
#include "cluster/links/hold_words.hpp"
#include "cluster/links/unconfirmed.hpp"
#include "cluster/ways/routes.hpp"
#include "cluster/ways/way_tables.hpp"
#include "cluster/words/retry_without_memory.hpp"
#include "cluster/words/surroundings.hpp"
#include "net/transport.hpp"

namespace strata::cluster {

class links {
 public:
  // The first transport that reaches the next node on a way carries what is sent there. For a node
  // that is not in the job yet, everything waits until it is admitted and nothing is kept back any
  // more. `elastic`: nodes may come and go. `ways_change`: while the job runs.
  struct traits {
    bool elastic = false;
    bool ways_change = false;
  };
  links(node_id self, const std::vector<net::transport*>& transports, const routes& ways,
        traits what);
  links(node_id self, const std::vector<net::transport*>& transports, const routes& ways,
        bool elastic = false)
      : links(self, transports, ways, traits{elastic, false}) {}
  ~links();
  links(const links&) = delete;
  links& operator=(const links&) = delete;

  // `node` will come; ways to it begin with `next`. Before anybody sends something there.
  void expect(node_id node, node_id next);
  // `node` is reached by `way` now; what the program has for it is still kept back.
  void admit(node_id node, net::transport& way);
  // From now on what carries work to `node` is kept back here, and everything before has been
  // handed to the transport or waits in front of what is posted next; or it goes on.
  void keep_back(node_id node, bool kept);
  // The node has left: it counts as lost, but gets what it was told last, by others too, and around
  // connections that end, until on_lost(). Returns what was kept back for it.
  [[nodiscard]] std::deque<message_copy> retire(node_id node);

  // What is forwarded with this number goes by these ways, for as long as no other table has taken
  // its place: the next but one. As forward().
  void set_table(std::uint32_t number, const routes& ways) { tables_.set(number, ways); }
  // What is posted to `node` after this goes to `next` first, by the table of that number; all that
  // was posted before goes the old way, with `last_word`, if that is not empty, behind it.
  void change_way(node_id node, node_id next, std::uint32_t number,
                  std::span<const std::byte> last_word);

  // ---- connections that may end before their nodes do: those over networks where ways change ----
  // Called by whoever handles messages.

  [[nodiscard]] bool outlives_connection(node_id neighbour) const noexcept {
    const net::transport* const way = way_to(neighbour);
    return ways_change_ && way != nullptr && way->about().may_break;
  }
  // Nothing has to reach it any more: see retire().
  [[nodiscard]] bool is_over(node_id neighbour) const noexcept {
    const back_room* const b = peers_[neighbour].back_if_any();
    return is_lost(neighbour) && (b == nullptr || !b->is_retired);
  }
  // A message has come from that neighbour over its connection.
  void has_come(node_id neighbour, kind k, std::size_t bytes);
  // That one has said how much has come. Throws malformed.
  void on_confirmed(node_id neighbour, std::uint64_t come);
  // At every beat: says to all how much has come from them that was not said yet.
  struct trouble {
    // Who confirms nothing; unless this node was not `listening`, which proves nothing.
    std::vector<node_id> silent{};
    // Who is reached by so many detours within detours that a message does not fit any more.
    std::vector<node_id> too_far{};
  };
  [[nodiscard]] trouble confirm_all(bool listening);
  // Nothing goes or comes by it any more, and what there is to say waits. Returns how many messages
  // have come.
  std::uint64_t close(node_id neighbour);
  [[nodiscard]] std::uint64_t given(node_id neighbour) const {
    back_room* const b = peers_[neighbour].back_if_any();
    if (b == nullptr) return 0;
    const std::lock_guard lock(b->mutex);
    return b->given.given();
  }
  [[nodiscard]] std::uint64_t come(node_id neighbour) const noexcept {
    const back_room* const b = peers_[neighbour].back_if_any();
    return b != nullptr ? b->come.count() : 0;
  }
  // Where two nodes share several networks there is a spare connection, until it takes the place of
  // the other one, or is dropped.
  // Null: there is none.
  [[nodiscard]] net::transport* spare_to(node_id neighbour) const noexcept {
    const back_room* const b = peers_[neighbour].back_if_any();
    return b != nullptr ? b->spare : nullptr;
  }
  [[nodiscard]] bool has_spare(node_id neighbour) const noexcept {
    return spare_to(neighbour) != nullptr;
  }
  // There was none, and is one again: over another transport than the one in use.
  void add_spare(node_id neighbour, net::transport& spare) {
    peers_[neighbour].back().spare = &spare;
  }
  // By the spare connection, which changes nothing, but shows whether the other end still has it.
  void confirm_by_spare(node_id neighbour) {
    const std::uint64_t count = come(neighbour);
    (void)say_by_spare(neighbour, kind::confirmed, std::as_bytes(std::span(&count, 1)));
  }
  // Before anybody sends there.
  void begin_with_spare(node_id neighbour) noexcept {
    peer& p = peers_[neighbour];
    if (!has_spare(neighbour)) return;
    back_room& b = *p.back_if_any();
    b.spare = p.way.exchange(b.spare, std::memory_order_relaxed);
  }
  bool say_by_spare(node_id neighbour, kind k, std::span<const std::byte> payload);
  void drop_spare(node_id neighbour) noexcept;
  // So many have come there; the rest and all that follows goes by the spare connection. Throws
  // malformed.
  void go_on(node_id neighbour, std::uint64_t come);
  // So many have come there; the rest and all that follows goes by `way`. Throws malformed.
  void go_by(node_id neighbour, std::uint64_t come, std::vector<node_id> way);
  // What follows goes by that way instead, until all that goes around has gone.
  void go_by_another(node_id neighbour, std::vector<node_id> way);
  // That is the last by that way; what follows waits, until it begin_anew().
  void end_detour(node_id neighbour, kind k, std::span<const std::byte> payload);
  [[nodiscard]] bool has_ended_detour(node_id neighbour) const;
  // All that waits and follows goes by another connection, over which nothing has gone or come.
  void begin_anew(node_id neighbour, net::transport& way);
  // What goes by here around a connection from the first to the second; as forward().
  void pass_on(node_id next, std::span<const std::byte> head, std::span<const std::byte> payload,
               const flow& f);
  // To a neighbour, whatever way messages take; in the end, as mailer::say().
  void say(node_id neighbour, kind k, std::span<const std::byte> head,
           std::span<const std::byte> body) {
    retry_without_memory([&] { send(neighbour, k, head, body); });
  }

  // False: the node has left, and this kind would be of no use; nothing has happened.
  bool post(node_id to, kind k, std::span<const std::byte> head, std::span<const std::byte> body);
  // The connection over which messages for that node leave at present: see net::corked.
  [[nodiscard]] net::corked cork(node_id to, std::span<const std::byte> lasting) const noexcept;
  // Over this node's own connection, whatever way messages take. False: there is none, or no room
  // now; nothing has happened.
  bool post_directly(node_id to, kind k, std::span<const std::byte> head,
                     std::span<const std::byte> body);
  // What has come from another node and is for a third one: on to the next on its way, in the order
  // in which it came.
  // By one thread at a time. Of what waits too long here, its source hears. Throws malformed when
  // no way leads there.
  void forward(const forwarded_head& what, std::span<const std::byte> payload);
  // A handler has posted something to `to` because of what `source` has sent, which hears of it if
  // too much waits here: as of what is forwarded from there to `to`, which may be `source` itself.
  void posted_for(node_id source, node_id to) { tell_if_too_much(peers_[to].next, {source, to}); }
  [[nodiscard]] bool knows(std::uint32_t ways) const noexcept { return tables_.knows(ways); }
  // A message of kind::forward has come: on with it, as forward(). Returns what is for this node.
  // Throws malformed.
  [[nodiscard]] std::optional<cluster::forwarded> unwrap(std::span<const std::byte> payload,
                                                         const membership& members);
  // A gateway's word, a held_head: whether the program shall send there. Words may overtake each
  // other. Throws malformed.
  void hold(node_id gateway, reader r);

  // Who is to hear of what follows. Before anybody sends.
  void tell_of_congestion(visiting_protocol& v) noexcept { hears_of_congestion_ = &v; }
  // True while more is queued for that node than it should be.
  [[nodiscard]] bool is_congested(node_id to) const noexcept;
  // Blocks until it is not, or some node is lost.
  void wait_for_room(node_id to);

  // The body of t's sender thread: sends what was queued, until stop().
  void run_sender(net::transport& t);
  // One turn of it, and all of it where nodes share a thread: sends over t what was queued, and
  // what t has staged, as far as there is room. False: something is left, and t's sender is to come
  // back when there is more.
  bool send_queued(net::transport& t);
  // Makes the senders leave once everything queued is on its way, or cannot be sent any more, or
  // that time is over. The caller wakes them.
  void stop(std::int64_t limit_ns = net::wait_forever_ns) noexcept;

  // For people: what waits for room.
  [[nodiscard]] std::string describe_waits() const;
  // The same, of one neighbour; with headers, and what is kept back.
  [[nodiscard]] std::size_t queued_bytes(node_id neighbour) const noexcept {
    const back_room* const b = peers_[neighbour].back_if_any();
    return b != nullptr ? b->waiting.bytes() : 0;
  }

  void on_lost(node_id node);
  // It has left, and its words do not count any more. As hold().
  void forget_words_of(node_id gateway);
  // The job has lost a node: nobody waits for room or for a gateway's word any more. Who would give
  // it may be that node, or end because of it.
  void stop_waiting() noexcept;
  [[nodiscard]] bool is_lost(node_id node) const noexcept;
  // Null: that node is no neighbour.
  [[nodiscard]] net::transport* way_to(node_id node) const noexcept {
    return peers_[node].way.load(std::memory_order_acquire);
  }
  [[nodiscard]] std::uint64_t forwarded() const noexcept {
    return forwarded_.load(std::memory_order_relaxed);
  }

 private:
  // What may be queued for one node before the program has to wait.
  static constexpr std::size_t queued_bytes_max = std::size_t{1} << 20;

  // What a node has for a peer beside the way there: made when it is first needed, and then there
  // for good. Of the many nodes of a large job most never need it for each other.
  struct back_room {
    // Held while something is posted, so that nothing is when the way changes. Where ways do not
    // change nobody takes it. Before the mutexes.
    std::mutex way_mutex;
    std::uint32_t table = 0;  // the number of the ways by which it goes; with way_mutex
    std::mutex mutex;
    std::condition_variable room;
    backlog waiting;  // with the mutex
    // With the mutex; where ways change. See close() and go_by().
    enum class connection { open, closed, replaced, ending };
    connection stands = connection::open;
    std::vector<node_id> detour;      // once it is replaced
    std::size_t last_by_detour = 0;   // while that is ending: so many of the queue still go by it
    bool is_too_far = false;          // by that
    net::transport* spare = nullptr;  // of who handles messages
    bool is_retired = false;          // of who handles messages: and not over
    unconfirmed given;                // while it is open
    come_so_far come;                 // of who handles messages
    // With the mutex: see keep_back().
    bool keeps_back = false;
    // About the way there. With the mutex of the next node on it.
    words_heard heard;
    // About what is forwarded by here. With the mutex.
    words_told told;
  };
  // What every message looks at.
  struct peer {
    // Null: it is reached by others, or not yet. Release: what was prepared there for the node.
    // Partner: all who send.
    std::atomic<net::transport*> way{nullptr};
    // Release: what is in it. Partner: whoever finds it there.
    std::atomic<back_room*> rest{nullptr};
    std::atomic<node_id> next{0};  // on the way there; itself if it is a neighbour
    // Set while the queue is in use, so that nothing overtakes it.
    std::atomic<bool> queueing{false};
    std::atomic<bool> lost{false};
    std::atomic<bool> held{false};  // on the way there, see hold()

    [[nodiscard]] back_room* back_if_any() const noexcept {
      return rest.load(std::memory_order_acquire);
    }
    [[nodiscard]] back_room& back() {
      back_room* const b = back_if_any();
      return b != nullptr ? *b : make_back();
    }
    back_room& make_back();
  };
  // By the way that it has. With way_mutex, if ways change.
  bool dispatch(peer& p, node_id to, kind k, std::span<const std::byte> head,
                std::span<const std::byte> body);
  void tell(const flow& f, std::uint16_t number);
  bool send(node_id neighbour, kind k, std::span<const std::byte> head,
            std::span<const std::byte> body);
  void tell_if_too_much(node_id next, const flow& f) {
    if (queued_bytes(next) > queued_bytes_max) [[unlikely]]
      tell_of_too_much(next, f);
  }
  void tell_of_too_much(node_id next, const flow& f);
  // True when nothing is left that could be sent now.
  bool send_queued(node_id to, peer& p);
  bool send_around(back_room& b);
  // With the mutex.
  static bool goes_around(const back_room& b) noexcept {
    using connection = back_room::connection;
    return b.stands == connection::replaced ||
           (b.stands == connection::ending && b.last_by_detour != 0);
  }
  void confirm(node_id neighbour, back_room& b);
  // So many have come; the rest waits in front of all else. With the mutex.
  static void queue_rest(back_room& b, std::uint64_t come);
  void wake_who_go_around();

  void congestion_begins() noexcept {
    if (hears_of_congestion_ != nullptr) hears_of_congestion_->on_congestion();
  }
  // Whoever waits in another way than wait_for_room() is told so, without any lock.
  void congestion_may_be_over() {
    if (hears_of_congestion_ != nullptr) hears_of_congestion_->on_room_made();
  }

  const node_id self_;
  const bool elastic_, ways_change_;
  visiting_protocol* hears_of_congestion_ = nullptr;
  way_tables tables_;        // of forward()
  std::vector<peer> peers_;  // index: node
  std::atomic<std::uint64_t> forwarded_{0};
  std::atomic<bool> goes_around_{false};  // a connection was closed
  std::atomic<bool> nobody_waits_{false};
  std::atomic<bool> stopping_{false};  // release: the next line
  std::int64_t leave_until_ns_ = INT64_MAX;
};

}  // namespace strata::cluster
