// SPDX-License-Identifier: Apache-2.0
#include "cluster/work/split_phase.hpp"

#include <algorithm>
#include <utility>

#include "cluster/words/pieces.hpp"
#include "cluster/work/counted_post.hpp"
#include "cluster/work/split_phase_words.hpp"
#include "strata/error.hpp"

namespace strata::cluster {
namespace {

using detail::global_address;

// What the answer to a request is, and may wait for room as: small ones are heads above all.
constexpr std::size_t answer_bytes(std::size_t asked) noexcept {
  const std::size_t pieces = asked <= piece_bytes_max ? 1 : (asked - 1) / piece_bytes_max + 1;
  return asked + pieces * answer_head_bytes;
}

std::uint64_t advanced(std::uint64_t address, std::uint64_t by) {
  const auto a = global_address::from_bits(address);
  return global_address(a.node(), static_cast<std::byte*>(a.address()) + by).bits();
}

// Before anything is said of it: pieces would be told from each other by addresses that are not
// null. `what` may be nothing.
void refuse_nowhere(const char* what, const void* address, std::size_t bytes) {
  if (bytes != 0) detail::check_somewhere(what, address);
}

// Where pieces go; the last of them signals the slot.
struct block {
  std::uint64_t to;
  std::size_t bytes;
  std::uint64_t slot;
  put_head operator()(std::size_t offset, std::size_t n) const {
    return {advanced(to, offset), offset + n == bytes ? slot : 0};
  }
};

}  // namespace

node_left_error has_left(node_id node) {
  return node_left_error(node, "node " + std::to_string(node) + " has left the job");
}

split_phase::split_phase(mailer& mail, local_node& here, work_counts& counts)
    : mail_(mail), here_(here), counts_(counts) {}

split_phase::requests& split_phase::requests_to(node_id node) {
  const std::lock_guard lock(tables_mutex_);
  return requests_[node];
}

split_phase::large_item& split_phase::large_item_of(node_id node) {
  const std::lock_guard lock(tables_mutex_);
  return large_items_[node];
}

void split_phase::post(node_id to, kind k, std::span<const std::byte> head,
                       std::span<const std::byte> body) {
  post_counted(mail_, counts_, to, k, head, body);
}

void split_phase::send(node_id to, kind k, std::span<const std::byte> head,
                       std::span<const std::byte> body) {
  check_is_there(to);
  mail_.wait_for_room(to);
  post(to, k, head, body);
}

void split_phase::check_is_there(node_id node) const {
  // Acquire: loss_. Partner: lose().
  if (is_lost_.load(std::memory_order_acquire)) [[unlikely]]
    std::rethrow_exception(loss_);
  if (mail_.members().of(node) == standing::left) throw has_left(node);
}

bool split_phase::is_known(node_id node) const {
  return node < mail_.nodes() && mail_.members().of(node) != standing::absent;
}

void split_phase::check_is_known(node_id node) const {
  if (!is_known(node))
    throw malformed("an address of node " + std::to_string(node) + ", which there is not");
}

void split_phase::signal(global_address slot) {
  send(slot.node(), kind::signal, bytes_of(slot.bits()));
}

void split_phase::increment(global_address slot, std::uint32_t more) {
  const std::uint64_t head[] = {slot.bits(), more};
  send(slot.node(), kind::increment, std::as_bytes(std::span(head)));
}

template <class HeadOf>
void split_phase::post_pieces(node_id to, kind k, std::span<const std::byte> part,
                              HeadOf&& head_of) {
  post_in_pieces(mail_, to, part, piece_bytes_max,
                 [&](std::size_t done, std::span<const std::byte> piece) {
                   post(to, k, bytes_of(head_of(done, piece.size())), piece);
                 });
}

template <class HeadOf>
void split_phase::send_pieces(node_id to, kind k, std::span<const std::byte> all,
                              HeadOf&& head_of) {
  for (std::size_t done = 0; done != all.size();) {
    const std::size_t n = std::min(all.size() - done, at_once_max);
    check_is_there(to);
    mail_.wait_for_room(to);
    post_pieces(to, k, all.subspan(done, n), [&](std::size_t offset, std::size_t bytes) {
      return head_of(done + offset, bytes);
    });
    done += n;
  }
}

void split_phase::wait_for_room_of(global_address slot) {
  if (slot.address() != nullptr && slot.node() < mail_.nodes()) mail_.wait_for_room(slot.node());
}

void split_phase::put(global_address to, const void* value, std::size_t bytes,
                      global_address slot) {
  refuse_nowhere("the global_ptr to put to", to.address(), bytes);
  if (slot.node() != to.node()) wait_for_room_of(slot);
  if (bytes <= piece_bytes_max) {
    const put_head head{to.bits(), slot.bits()};
    return send(to.node(), kind::put, bytes_of(head), bytes_at(value, bytes));
  }
  send_pieces(to.node(), kind::put, bytes_at(value, bytes), block{to.bits(), bytes, slot.bits()});
}

void split_phase::get(global_address from, void* into, std::size_t bytes, global_address slot) {
  check_is_there(from.node());
  refuse_nowhere("the global_ptr to get from", from.address(), bytes);
  refuse_nowhere("the pointer to get into", into, bytes);
  const auto here = global_address(mail_.self(), into).bits();
  std::size_t done = 0;
  do {
    const std::size_t n = std::min(bytes - done, at_once_max);
    const bool last = done + n == bytes;
    request(from.node(),
            {advanced(from.bits(), done), advanced(here, done), last ? slot.bits() : 0, n});
    done += n;
  } while (done != bytes);
}

void split_phase::request(node_id node, const wanted& w) {
  requests& r = requests_to(node);
  const std::size_t bytes = answer_bytes(w.bytes);
  {
    const std::lock_guard lock(r.mutex);
    if (!r.waiting.empty() || (r.in_flight != 0 && r.in_flight + bytes > window_bytes)) {
      r.waiting.push_back(w);
      return;
    }
    r.in_flight += bytes;
  }
  // Outside the lock, because it may wait. The pieces of one get still go out in order:
  // this thread posts one before it looks at the next, and on_put() posts those that waited before
  // it lets go of the lock.
  try {
    send(node, kind::get, bytes_of(w));
  } catch (...) {
    // The node has left meanwhile, or there is no memory: what was not asked for does not come.
    const std::lock_guard lock(r.mutex);
    r.in_flight -= std::min(r.in_flight, bytes);
    ask_for_waiting(node, r);
    throw;
  }
}

void split_phase::ask_for_waiting(node_id node, requests& r) noexcept {
  try {
    while (!r.waiting.empty()) {
      const std::size_t bytes = answer_bytes(r.waiting.front().bytes);
      if (r.in_flight != 0 && r.in_flight + bytes > window_bytes) return;
      post(node, kind::get, bytes_of(r.waiting.front()));
      r.in_flight += bytes;
      r.waiting.pop_front();
    }
  } catch (...) {
    // Those who asked are not here to hear it, and nobody would ask for them later.
    r.waiting.clear();
    here_.fail(std::current_exception());
  }
}

void split_phase::answer(node_id to, const wanted& w) {
  const void* const source = global_address::from_bits(w.from).address();
  post_pieces(to, kind::got, bytes_at(source, w.bytes), block{w.into, w.bytes, w.slot});
}

void split_phase::drop_in(global_address box, const void* item, std::size_t bytes) {
  constexpr std::size_t mailbox_itself = 1;
  refuse_nowhere("the global_ptr to a mailbox", box.address(), mailbox_itself);
  if (bytes <= piece_bytes_max) {
    send(box.node(), kind::drop_in, bytes_of(drop_in_head{box.bits(), 0, bytes}),
         bytes_at(item, bytes));
    return;
  }
  // One large item at a time, so that the pieces of two are not mixed.
  const std::lock_guard lock(large_item_of(box.node()).sending);
  send_pieces(box.node(), kind::drop_in, bytes_at(item, bytes), [&](std::size_t offset, auto) {
    return drop_in_head{box.bits(), offset, bytes};
  });
}

std::string split_phase::describe_waits() {
  std::string text = away_.describe(mail_.self());
  const std::lock_guard lock(tables_mutex_);
  for (auto& [node, r] : requests_) {
    const std::lock_guard one(r.mutex);
    if (r.in_flight == 0) continue;
    text += "  " + std::to_string(r.in_flight) + " bytes are awaited from node " +
            std::to_string(node) + ", " + std::to_string(r.waiting.size()) +
            " more requests wait for them\n";
  }
  return text;
}

void split_phase::on_left(node_id node) {
  {
    const std::lock_guard lock(tables_mutex_);
    // What was asked of it and is not here will not come.
    if (const auto at = requests_.find(node); at != requests_.end()) {
      const std::lock_guard one(at->second.mutex);
      at->second.in_flight = 0;
      at->second.waiting.clear();
    }
  }
  away_.on_left(node, away_.keep(std::make_exception_ptr(has_left(node))));
}

bool split_phase::awaits_something() {
  if (away_.count() != 0) return true;
  const std::lock_guard lock(tables_mutex_);
  return std::any_of(requests_.begin(), requests_.end(), [](auto& one) {
    const std::lock_guard requests_lock(one.second.mutex);
    return one.second.in_flight != 0;
  });
}

}  // namespace strata::cluster
