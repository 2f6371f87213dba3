// SPDX-License-Identifier: Apache-2.0
// Groups of threads on every node of a job: they begin as one, or none does. strata/group.hpp has
// this and what the members do.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <type_traits>
#include <vector>

#include "strata/membership.hpp"
#include "strata/message.hpp"
#include "strata/remote_thread.hpp"

namespace strata {

class group;

namespace detail {

// The members on one node.
class crew;
struct joining;
// The same until all have ended.
void run_members(endpoint_id home, unsigned threads, const std::function<void(group&)>& body);

// Where the nodes meet: passes the list of all members around, then joins the nodes' threads.
class group_launch {
 public:
  explicit group_launch(unsigned threads_per_node);
  group_launch(const group_launch&) = delete;
  group_launch& operator=(const group_launch&) = delete;
  // Where not all nodes have been called, the others are sent away.
  ~group_launch();
  [[nodiscard]] endpoint_id home() const noexcept { return home_.id(); }
  // Calls one node, by begin(); nodes come by their numbers. Throws what that throws, and
  // std::system_error as a thread.
  void add(node_id_t number, const std::function<remote_thread()>& begin);
  // Suspends until all have ended. Rethrows: of the nodes' errors one that was not caused by
  // another.
  void finish();

 private:
  struct called_node;
  void hear(called_node& node) noexcept;
  // Until each node has told its members, or its call has ended. Then tells those who wait whom
  // they are with, or, unless all are there and may begin, that they are not to.
  void meet(bool may_begin);
  [[nodiscard]] std::size_t place_of(node_id_t number) const;

  // Nobody waits for the ends of calls any more. Written before those that have joined may begin,
  // and so before they end; who reads it too early sends a word more.
  std::atomic<bool> have_met_{false};
  endpoint home_;
  unsigned threads_;
  std::vector<std::unique_ptr<called_node>> nodes_;
  std::vector<joining> list_;  // of all members, with room for those of each node before its call
};

template <class F, class... Arguments>
struct group_body {
  void operator()(endpoint_id home, unsigned threads, const Arguments&... arguments) const {
    run_members(home, threads, [&](group& all) { F{}(all, arguments...); });
  }
};

// Of these nodes, by their numbers.
template <class F, class... Arguments>
void run_group_on(const std::vector<node_id_t>& nodes, unsigned threads_per_node, F,
                  const Arguments&... arguments) {
  group_launch launch(threads_per_node);
  for (const node_id_t n : nodes) {
    launch.add(n, [&] {
      return remote_thread(on_node{n}, group_body<F, Arguments...>{}, launch.home(),
                           threads_per_node, arguments...);
    });
  }
  launch.finish();
}

}  // namespace detail

/// Calls f(group, arguments...) in `threads_per_node` threads on every node of the job, members of
/// one group in which the n-th of strata::members() has the ranks from n x threads_per_node on, and
/// waits for all of them. Nodes that come later have no part in it; one that is to leave does so
/// when its threads have ended. Each thread is the member at its this_thread::endpoint(): members()
/// of the group are where the program sends what is for them.
/// f and the arguments: as for remote_thread. strata_pthread_exit() in f ends its member alone, as
/// a return does. What f throws makes its member leave the group; once all have ended one such
/// exception is rethrown, as remote_error if it was on another node. Throws misuse_error for no
/// threads, in a fiber and outside a runtime; node_lost_error. Where a node cannot begin, f is
/// called nowhere, and its error is thrown: std::system_error if it has not so many threads,
/// std::bad_alloc if it has no memory for its members, what its arguments throw there,
/// node_left_error if it has just left.
template <class F, class... Arguments>
requires(std::is_empty_v<F>&& std::is_default_constructible_v<F>) void run_group(
    unsigned threads_per_node, F f, const Arguments&... arguments) {
  static_assert(std::is_invocable_v<F, group&, const Arguments&...>,
                "run_group(threads, f, arguments...): f cannot be called with a strata::group& and "
                "these arguments");
  detail::run_group_on(members(), threads_per_node, f, arguments...);
}
/// Does not compile: where a function is differs from node to node.
template <class Result, class... Parameters, class... Arguments>
void run_group(unsigned, Result (*)(Parameters...), const Arguments&...) {
  static_assert(detail::always_false<Result>,
                "a function's address means nothing on another node; name the function in a lambda "
                "that captures nothing: run_group(threads, [](strata::group& all) { work(all); })");
}
/// Does not compile: what it holds may be of this node, and only arguments are looked at.
template <class F, class... Arguments>
requires(detail::has_state<F>) void run_group(unsigned, F, const Arguments&...) {
  static_assert(detail::always_false<F>,
                "a lambda that captures something, or another function object with a state, does "
                "not travel to another node; capture nothing and pass what it needs as arguments: "
                "run_group(threads, [](strata::group& all, int n) { work(all, n); }, n)");
}

}  // namespace strata
