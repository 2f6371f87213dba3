// SPDX-License-Identifier: Apache-2.0
// Connections that have ended and are made again: what the engine does about them.
#include <utility>

#include "cluster/engine.hpp"
#include "cluster/reopening.hpp"
#include "strata/error.hpp"

namespace strata::cluster {

// As it has connected.
void engine::begin_to_mend(std::unique_ptr<reopening> by) {
  if (by == nullptr) return;
  reopening_ = std::move(by);
  mending_ = std::make_unique<mending>(self_, mending::settings{}, *this, now_ns());
}

void engine::has_lost(node_id n, const net::transport* over) {
  if (mending_ == nullptr || is_over()) return;
  if (const auto network = reopening_->network_of(n, over)) mending_->lost(n, *network, now_ns());
}

std::uint64_t engine::close(node_id n) {
  has_lost(n, links_->way_to(n));
  return links_->close(n);
}

void engine::drop_spare(node_id n) {
  if (const net::transport* const spare = links_->spare_to(n)) has_lost(n, spare);
  links_->drop_spare(n);
}

bool engine::connect_again(node_id n, mending::network over) {
  if (!members_.has(n) || detours_->is_undecided(n)) return false;
  reopening_->connect(n, over, who_->reopened_at(n, over));
  return true;
}

// Both ends do, each in its own time. What the other end says by it first waits until then.
void engine::on_met(node_id n, mending::network over, std::unique_ptr<net::renewal> made) {
  mending_->failed(n, over, now_ns());  // so far
  if (is_over() || !members_.has(n) || links_->is_lost(n)) return;
  // The newest counts, at both ends: so who has not begun with the one before takes it, even if it
  // is about to.
  if (!reopened_.contains(n) && detours_->is_undecided(n)) return;
  net::transport* const line = reopening_->line_to(n, over);
  if (detours_->is_broken(n)) {
    reopened_.insert_or_assign(n, reopened{over, std::move(made)});
    return detours_->on_connected(n);
  }
  // Of the one in use the other end has just heard that it has ended; this one will, too.
  if (line == links_->way_to(n)) return;
  if (links_->spare_to(n) != nullptr) {
    // The other end knows that this one has ended.
    if (links_->spare_to(n) != line) return;
    detours_->on_spare_broken(n);
  }
  try {
    if (!made->begin()) return;
  } catch (const error&) {
    return;  // what it needs is used up: another time
  }
  links_->add_spare(n, *line);
  mending_->made(n, over, now_ns());
}

bool engine::begin_anew(node_id n) {
  const reopened next = std::move(reopened_.at(n));
  reopened_.erase(n);
  bool begins = false;
  try {
    begins = next.made->begin();
  } catch (const error&) {
    // What it needs is used up.
  }
  links_->begin_anew(n, *reopening_->line_to(n, next.over));
  mending_->made(n, next.over, now_ns());
  return begins;
}

void engine::on_not_met(node_id n, mending::network over) { mending_->failed(n, over, now_ns()); }

std::vector<node_id> engine::spares() {
  std::vector<node_id> all = members_.all();
  std::erase_if(all, [this](node_id n) {
    return n == self_ || !reopening_->network_of(n, links_->spare_to(n));
  });
  return all;
}

}  // namespace strata::cluster
