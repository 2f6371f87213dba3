// SPDX-License-Identifier: Apache-2.0
#include "cluster/work/calls_away.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <new>

#include "base/spelling.hpp"

namespace strata::cluster {
namespace {

void tell(detail::task& t, const std::exception_ptr& error) {
  t.type->wire->accept(t, error, nullptr);
}

}  // namespace

void calls_away::goes(detail::task& t, node_id to, trip how) {
  std::exception_ptr lost;
  {
    const std::lock_guard lock(mutex_);
    if (lost_ == nullptr) {
      constexpr std::uint64_t order_max = (std::uint64_t{1} << 47) - 1;
      away_.emplace(&t, away{.to = to,
                             .as_token = how == trip::as_token ? 1U : 0U,
                             .order = next_++ & order_max});
      return;
    }
    lost = lost_;
  }
  tell(t, lost);
}

void calls_away::goes_on(detail::task& t, node_id to) {
  const std::lock_guard lock(mutex_);
  if (const auto at = away_.find(&t); at != away_.end()) at->second.to = to;
}

bool calls_away::comes_back(detail::task& t) {
  const std::lock_guard lock(mutex_);
  return away_.erase(&t) != 0;
}

void calls_away::returns(detail::task* t, const std::exception_ptr& error, reader& r) {
  std::span<const std::byte> value;
  {
    const std::lock_guard lock(mutex_);
    const auto at = away_.find(t);
    if (at == away_.end()) throw malformed("the result of a call that is not awaited");
    if (error == nullptr) value = r.take_bytes(t->type->wire->result_bytes);
    if (!r.empty()) [[unlikely]] {
      if (error != nullptr || t->type->wire->take_result == nullptr)
        throw malformed("a result with something behind it");
      // Nobody else ends the call meanwhile: that would need the lock.
      t->type->wire->take_result(*t, r.take_rest());
    }
    // Not before all of it is as it should be: a call whose answer is refused is still away, and
    // hears from lose() that the node is lost.
    away_.erase(at);
  }
  t->type->wire->accept(*t, error, value.data());
}

void calls_away::tell_all(const table& gone, const std::exception_ptr& error) {
  std::vector<gone_call> in_order;
  try {
    in_order.reserve(gone.size());
  } catch (const std::bad_alloc&) {
    for (const auto& [t, a] : gone) tell(*t, error);
    return;
  }
  for (const auto& [t, a] : gone) in_order.push_back({a.order, t});
  std::sort(in_order.begin(), in_order.end());
  for (const gone_call& c : in_order) tell(*c.task, error);
}

std::size_t calls_away::take_oldest_to(node_id node, std::span<gone_call> room) {
  const std::lock_guard lock(mutex_);
  std::size_t n = 0;
  // A heap, the youngest in front.
  const auto taken = [&] { return room.first(n); };
  for (const auto& [t, a] : away_) {
    if (a.to != node || a.as_token != 0) continue;
    if (n == room.size()) {
      if (a.order > room.front().order) continue;
      std::pop_heap(taken().begin(), taken().end());
      --n;
    }
    room[n++] = {a.order, t};
    std::push_heap(taken().begin(), taken().end());
  }
  std::sort_heap(taken().begin(), taken().end());
  for (const gone_call& c : taken()) away_.erase(c.task);
  return n;
}

void calls_away::lose(const std::exception_ptr& error) {
  table gone;
  {
    const std::lock_guard lock(mutex_);
    lost_ = error;
    gone.swap(away_);
  }
  tell_all(gone, error);
}

void calls_away::on_left(node_id node, const std::exception_ptr& error) {
  // A node leaves when it holds nothing: few are on their way there.
  std::array<gone_call, 128> oldest;
  std::size_t n = 0;
  do {
    n = take_oldest_to(node, oldest);
    for (const gone_call& c : std::span(oldest).first(n)) tell(*c.task, error);
  } while (n == oldest.size());
}

std::exception_ptr calls_away::keep(std::exception_ptr error) {
#if defined(STRATA_TSAN)
  const std::lock_guard lock(mutex_);
  thrown_elsewhere_.push_back(error);
#endif
  return error;
}

std::size_t calls_away::count() {
  const std::lock_guard lock(mutex_);
  return away_.size();
}

std::string calls_away::describe(node_id self) {
  constexpr std::size_t shown_max = 20;
  std::string text;
  std::size_t shown = 0;
  const std::lock_guard lock(mutex_);
  for (const auto& [task, a] : away_) {
    if (++shown > shown_max) break;
    const node_id node = a.to;
    text += (node == self ? "  a call waits on the shelf, or is awaited from who took it"
                          : "  a call is awaited from node " + std::to_string(node)) +
            ": " + std::string(plain_name(task->type->name())) + "\n";
  }
  return text;
}

}  // namespace strata::cluster
