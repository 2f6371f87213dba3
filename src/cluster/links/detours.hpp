// SPDX-License-Identifier: Apache-2.0
// Around a connection that has ended though both its nodes live: what the two have to say to each
// other as neighbours goes by others, from the message on that the connection has not carried any
// more. Above, nothing has happened; other ways come later (rerouting.hpp). (Requirement P12.)
//
//   all -> neighbours      cut_off   these two reach each other no more, or again; passed on by all
//   one end -> the other   resume    so many messages have come over the connection that has ended
//   one end -> the other   detour    what goes around, and by whom: the sender names the whole way,
//                                    so it goes in no circle, whatever the others know
//   one end -> the other   unheard   so many messages were given to the connection, and you confirm
//                                    nothing; said at every beat. If they do not come, though you
//                                    live, or I never hear you say so, give the connection up
//   leaver -> neighbours   gone      all know that I have left (membership_protocol.hpp), so what
//                                    ends now is my process. Whoever has not heard it, and asks for
//                                    a detour to there, is told so by whoever has
//
// Until then who has left is as good as anybody here: what others answer it, and what it has told
// them last, may have to go around.
//
// When the network returns (mending.hpp) the two go back to a new connection, in the same order:
//
//   one end -> the other   cut_off   by the detour, with the number of the end: I have a new
//                                    connection; and when both have said so, with the next number:
//                                    this is the last by the detour, what follows goes by the new
//                                    one
//
// When one leaves by which the detour goes, the two look for another one, and say there again what
// they have said of the new connection: what went by the first may have been lost behind its last
// word. (Nothing else did: that node was let go when other ways were in use.)
//
// Neither takes anything from that before it has heard the other's last word, nor gives it anything
// before it has said its own. Nobody waits for a network that has gone again: who has said the
// first word has a connection, be it dead by then, of whose end it hears as of any other.
//
// Of each pair the ends and the beginnings are counted, so that nobody takes for news what it hears
// late: odd numbers are ends.
//
// `unheard` and `resume` go by detours too. Before all that the two try a spare connection, where
// they share another network: `resume` goes over it from both ends, and when it has come they go on
// as before; nobody else hears of it.
//
// A node that no way leads to any more is lost: so it is when its process ends, with all its
// connections, as soon as all who had one have said so. Source: the flooding of what has changed is
// that of McQuillan, Richer and Rosen, "The new routing algorithm for the ARPANET", 1980.
//
// All of it is called with the inbox.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cluster/ways/routes.hpp"
#include "cluster/words/codec.hpp"
#include "cluster/words/kinds.hpp"

namespace strata::cluster {

class detours {
 public:
  using pair = std::pair<node_id, node_id>;  // the lower number first
  using path = std::vector<node_id>;         // all nodes after this one, the destination last
  using pair_in_order = std::pair<node_id, node_id>;  // source and destination
  using words = std::map<pair, std::uint32_t>;        // see way_plan

  // Who acts on it.
  class hands {
   public:
    // There is a connection to n, or was.
    [[nodiscard]] virtual bool is_connected(node_id n) = 0;
    // Nothing goes or comes by the connection to n any more. Returns how many messages have come.
    virtual std::uint64_t close(node_id n) = 0;
    // Of what was given to the connection to n, and of what has come by it.
    [[nodiscard]] virtual std::uint64_t given(node_id n) = 0;
    [[nodiscard]] virtual std::uint64_t come(node_id n) = 0;
    // By the spare connection to n, which nothing else goes by; not at all if there is none
    // (false).
    virtual bool say_by_spare(node_id n, kind k, std::span<const std::byte> payload) = 0;
    virtual void drop_spare(node_id n) = 0;
    // So many of the messages given to the connection have come; the rest, and what follows, goes
    // by the spare one, which takes its place. Throws malformed.
    virtual void go_on(node_id n, std::uint64_t come) = 0;
    // To a neighbour, behind all that has been said to it.
    virtual void say(node_id n, kind k, std::span<const std::byte> head,
                     std::span<const std::byte> body) = 0;
    // So many of the messages given to the connection have come; what follows goes by `way`, each
    // in a message of kind::detour that begins with detour_head(). Throws malformed.
    virtual void go_by(node_id n, std::uint64_t come, const path& way) = 0;
    // What follows goes by that way instead.
    virtual void go_by_another(node_id n, const path& way) = 0;
    // What others have to say to each other around a connection: on to the next, as say(); that
    // one's source waits when too much does.
    virtual void pass_on(node_id next, std::span<const std::byte> head,
                         std::span<const std::byte> payload, const pair_in_order& ends) = 0;
    // To whoever asks for a detour, by the ways of the job. Throws malformed when there is no such
    // node.
    virtual void answer(node_id n, kind k, std::span<const std::byte> payload) = 0;
    // Nothing is said to n any more, nor waits for it. Throws malformed when it has not left.
    virtual void let_go(node_id n) = 0;
    // Something has come from n, which lives.
    virtual void heard_of(node_id n) = 0;
    // What n has said to its neighbour, as if it had come over the connection.
    virtual void on_detoured(node_id n, kind k, std::span<const std::byte> payload) = 0;
    // The ways of node n, over what is left.
    [[nodiscard]] virtual routes ways_without(node_id n, const std::set<pair>& cuts) = 0;
    // That is the last that goes to n by the detour; what follows waits.
    virtual void end_detour(node_id n, kind k, std::span<const std::byte> payload) = 0;
    [[nodiscard]] virtual bool has_ended_detour(node_id n) = 0;
    // What waits for n, and all that follows, goes by the connection of which on_connected() has
    // told last, and nothing has been given to it or has come by it. False: it has ended already.
    [[nodiscard]] virtual bool begin_anew(node_id n) = 0;
    // These two reach each other no more (odd), or again.
    virtual void on_word(const pair& ends, std::uint32_t number) = 0;
    // It has sent nonsense, or no way leads there.
    virtual void lose(node_id n, const std::string& why) = 0;
    virtual void cannot_reach(node_id n, const std::string& why) = 0;

   protected:
    ~hands() = default;
  };

  // `known`: what had ended before this node came.
  detours(node_id self, node_id nodes, const words& known, hands& h);

  // Throws malformed.
  bool on_message(node_id from, kind k, reader r);
  // This node's connection to n has ended.
  void on_broken(node_id n, const std::string& why);
  // Its spare one has.
  void on_spare_broken(node_id n);
  // At every beat at which the connection to n is silent, or n is. By whatever other way there is n
  // hears of it; a node that was merely stopped for a while keeps its connections.
  void on_silent(node_id n);
  // There is a connection to n again, which is_broken().
  void on_connected(node_id n);
  // There is not any more: n, not is_undecided(), has left.
  void forget_new(node_id n);
  // What goes around by it goes by others from now on.
  void on_left(node_id n);
  // This node has left, which all know.
  void say_gone();
  // n has said so: its connection ends with its process.
  [[nodiscard]] bool has_gone(node_id n) const { return gone_.contains(n); }
  // What others have heard.
  void learn(const words& about_connections);
  // Whoever has heard the last by a detour may have to wait until its own has room there. True:
  // somebody still does, and this is to be called again soon.
  bool try_to_begin_anew();
  // At every beat. Nobody waits for an answer by a spare connection for longer than two.
  void beat();

  // Its connection has ended, and the two do not go on by another one.
  [[nodiscard]] bool is_broken(node_id n) const { return broken_.contains(n); }
  // But they may still do so, or are about to: no other connection is of use now.
  [[nodiscard]] bool is_undecided(node_id n) const {
    const auto found = broken_.find(n);
    return found != broken_.end() && (found->second.by_spare || found->second.said_last);
  }
  [[nodiscard]] bool is_cut(node_id n) const { return cuts_.contains(std::minmax(self_, n)); }
  [[nodiscard]] const std::set<pair>& cuts() const noexcept { return cuts_; }

 private:
  // A neighbour to which the connection has ended.
  struct neighbour {
    std::string why;
    std::uint32_t number = 0;  // of the connection: even
    std::uint64_t come = 0;
    bool by_spare = false;  // it is asked to go on by that
    unsigned beats = 0;     // since then
    path way{};             // else; empty: none was found yet
    bool resumed = false;   // what follows goes by it
    // On the way to a new one: see above.
    bool has_new = false, said_new = false, other_has_new = false;
    bool said_last = false, heard_last = false;
    // The other end has begun with it and lost it already; and what it has said of that.
    bool ended_again = false;
    std::optional<std::uint64_t> come_again{};
  };
  [[nodiscard]] std::uint32_t number_of(const pair& ends) const;
  [[nodiscard]] pair with(node_id n) const { return std::minmax(self_, n); }
  void hear(const pair& ends, std::uint32_t number, node_id heard_from);
  void cut(node_id n) { hear(with(n), broken_.at(n).number + 1, self_); }
  void on_word_of(node_id from, std::uint32_t number);
  void try_to_begin_anew(node_id n);
  void look_for_way(node_id n, neighbour& there);
  void leave_way(node_id n, neighbour& there);
  void say_around(const path& way, kind k, std::span<const std::byte> payload);
  [[nodiscard]] path way_to(node_id n, const std::set<pair>& cuts) const;
  void on_resume(node_id from, std::uint64_t come, std::uint32_t number);
  void on_resume_by_spare(node_id from, reader r);
  void pass_on(reader r);
  // By a detour.
  void on_arrival(node_id from, kind k, reader r);

  const node_id self_, nodes_;
  hands& hands_;
  // Of a neighbour that does not hear this node, or is not heard.
  struct complaint {
    std::uint64_t given = 0;
    bool is_new = true;   // said since the last beat
    unsigned beats = 0;   // at which it was
    unsigned pauses = 0;  // one after the other at which it was not
  };
  void on_unheard(node_id from, reader r);
  void on_gone(reader r);
  std::map<node_id, complaint> complaints_;
  unsigned depth_ = 0;  // of the detour within detours that is being handled
  std::map<node_id, neighbour> broken_;
  words about_connections_;
  std::set<pair> cuts_;  // of these
  std::set<node_id> gone_;
};

// What goes before a neighbour's message that takes a detour.
std::vector<std::byte> detour_head(node_id source, kind k, const detours::path& way);

}  // namespace strata::cluster
