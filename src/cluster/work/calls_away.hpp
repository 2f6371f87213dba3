// SPDX-License-Identifier: Apache-2.0
// Calls that other nodes make: each is remembered from when it goes away, and told its end once,
// whether that is its result or that none will come.
#pragma once
#include <cstdint>
#include <exception>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "cluster/words/codec.hpp"
#include "cluster/words/surroundings.hpp"
#include "strata/detail/remote.hpp"

namespace strata::cluster {

class calls_away {
 public:
  // Whether a call goes to that node and no other, or as a token: to whoever makes it in the end,
  // or back here if that node leaves before it has got it.
  enum class trip : std::uint8_t { to_named, as_token };
  // A call goes away; before its result can be back. If calls are lost already it throws at once.
  void goes(detail::task& t, node_id to, trip how);
  // One that was said to go to this node itself, because nobody knew where, is taken to `to`.
  void goes_on(detail::task& t, node_id to);
  // It is made here after all. False: it has been lost meanwhile.
  [[nodiscard]] bool comes_back(detail::task& t);
  // Its result has come: what it threw, or the rest of r, all of it. Throws malformed, and nothing
  // has happened.
  void returns(detail::task* t, const std::exception_ptr& error, reader& r);

  // Nothing will come back any more: every call that is away, or goes away later, throws this.
  void lose(const std::exception_ptr& error);
  // Nor from this node: those that are on their way there, and nowhere else, throw this.
  void on_left(node_id node, const std::exception_ptr& error);
  // For what calls throw that was not thrown here.
  std::exception_ptr keep(std::exception_ptr error);

  [[nodiscard]] std::size_t count();
  // For people, on this node.
  [[nodiscard]] std::string describe(node_id self);

 private:
  struct away {
    std::uint64_t to : 16;
    std::uint64_t as_token : 1;
    std::uint64_t order : 47;  // in which they went
  };
  using table = std::unordered_map<detail::task*, away>;
  struct gone_call {
    std::uint64_t order;
    detail::task* task;
    bool operator<(const gone_call& other) const noexcept { return order < other.order; }
  };
  // Oldest first: the order in which they hear of a loss does not depend on where they lie in
  // memory, so that a simulation is replayed exactly. Without memory for that they hear of it in
  // some order.
  static void tell_all(const table& gone, const std::exception_ptr& error);
  // Takes out as many of those to that named node as there is room for, oldest first: how many.
  [[nodiscard]] std::size_t take_oldest_to(node_id node, std::span<gone_call> room);

  std::mutex mutex_;
  table away_;
  std::uint64_t next_ = 0;
  std::exception_ptr lost_;  // what calls throw now
#if defined(STRATA_TSAN)
  // As in the scheduler: ThreadSanitizer does not see the C++ library count references to an
  // exception, so the last to let go of one is us, at the end.
  std::vector<std::exception_ptr> thrown_elsewhere_;
#endif
};

}  // namespace strata::cluster
