// SPDX-License-Identifier: Apache-2.0
// Which nodes are in the job, as this node knows it. In most jobs all of them, from the beginning
// to the end; in an elastic one nodes come and go, and their numbers are never given out again.
//
// Any thread may ask; what changes it holds the inbox, so there is one at a time. (Requirement P2.)
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "net/wire.hpp"

namespace strata::cluster {

using net::node_id;

enum class standing : std::uint8_t {
  absent,   // nobody has had this number yet
  coming,   // it will be there; what is sent to it waits
  present,  // takes part in everything
  leaving,  // takes part, but no more work
  left,     // will never be there again
};

class membership {
 public:
  // All of `nodes` nodes, the numbers there are; those of `near` are on this node's host.
  membership(node_id self, node_id nodes, const std::vector<node_id>& near)
      : membership(self, {nodes, nodes, nodes}, {}, near) {
    elastic_ = false;
  }
  struct numbers {
    node_id capacity;  // that a node can ever have
    node_id begun;     // given out so far
    node_id founders;  // of the nodes that began the job
  };
  membership(node_id self, numbers n, const std::vector<node_id>& left,
             const std::vector<node_id>& near);

  [[nodiscard]] node_id self() const noexcept { return self_; }
  // Nodes may come and go.
  [[nodiscard]] bool is_elastic() const noexcept { return elastic_; }
  [[nodiscard]] standing of(node_id n) const noexcept {
    return standings_[n].load(std::memory_order_acquire);
  }
  // Its messages count, and it is told what concerns all.
  [[nodiscard]] bool has(node_id n) const noexcept {
    const standing s = of(n);
    return s == standing::present || s == standing::leaving;
  }
  // It takes work, and may be asked for some.
  [[nodiscard]] bool works(node_id n) const noexcept { return of(n) == standing::present; }
  // One more than the highest number that has been given out.
  [[nodiscard]] unsigned begun() const noexcept { return begun_.load(std::memory_order_acquire); }

  // The nodes that began the job are the first so many.
  [[nodiscard]] unsigned founders() const noexcept { return founders_; }

  // The other nodes of this host that are, or were, there: near(0) to near(nears() - 1).
  [[nodiscard]] unsigned nears() const noexcept { return nears_.load(std::memory_order_acquire); }
  [[nodiscard]] node_id near(unsigned i) const noexcept { return near_[i]; }

  // In the order of their numbers, this node among them once it has come.
  [[nodiscard]] std::vector<node_id> all() const;
  // The members that work, this node among them even if it does not.
  [[nodiscard]] std::vector<node_id> working() const;

  // ---- with the inbox ----
  // `n` will come, to this host or to another one.
  void expect(node_id n, bool here);
  void set(node_id n, standing s) noexcept;

 private:
  const node_id self_;
  bool elastic_ = true;
  // Release: what was prepared for that node. Partner: of().
  std::unique_ptr<std::atomic<standing>[]> standings_;
  const node_id founders_;
  std::atomic<unsigned> begun_;
  std::vector<node_id> near_;  // as long as it can become
  // Release: the entries below it. Partner: nears().
  std::atomic<unsigned> nears_{0};
};

}  // namespace strata::cluster
