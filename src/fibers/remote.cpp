// SPDX-License-Identifier: Apache-2.0
// The cold half of fibers' operations on other nodes: who there is, and what can travel.
#include "strata/detail/remote.hpp"

#include <array>
#include <atomic>
#include <limits>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "fibers/code_modules.hpp"
#include "sched/scheduler.hpp"
#include "strata/call.hpp"
#include "strata/detail/text_hash.hpp"
#include "strata/detail/worker.hpp"
#include "strata/error.hpp"
#include "strata/global_ptr.hpp"
#include "strata/remote_thread.hpp"

namespace strata {

unsigned num_workers() noexcept {
  const detail::worker& w = detail::this_worker();
  return w.owner != nullptr ? w.owner->workers() : 1;
}

}  // namespace strata

namespace strata::detail {
namespace {

// Also of a node that is just coming, whose address somebody may have before us.
bool is_there(const worker& w, node_id_t node) {
  if (w.others == nullptr) return false;
  if (node < w.nodes.load(std::memory_order_relaxed)) [[likely]]
    return true;
  const scheduler::visit n(*w.owner);
  return n && n->is_known(node);
}

remote_nodes& other_nodes(const worker& w, node_id_t node) {
  if (!is_there(w, node)) refuse_node(node, w);
  return *w.others;
}

// What is to be signalled elsewhere, if anything, is known to be somewhere: the node that hears of
// it later could not tell whose mistake it is.
void check_slot(const worker& w, global_address slot) {
  if (slot.address() != nullptr && slot.node() != w.node && !is_there(w, slot.node()))
    refuse_node(slot.node(), w);
}

// Written before main() and while a library is loaded, by one thread at a time. Release; partner:
// travelling_code::find(), which may look meanwhile.
constinit std::atomic<const travelling_code*> all_code{nullptr};

// Each module once. The same threads; partner: modules_of_travelling_code().
constinit std::array<std::atomic<const char*>, code_modules_max> code_modules{};

void note_module(const char* begin) noexcept {
  for (std::atomic<const char*>& m : code_modules) {
    const char* const known = m.load(std::memory_order_relaxed);
    if (known == nullptr) m.store(begin, std::memory_order_release);
    if (known == nullptr || known == begin) return;
  }
}

// What find() knows: all code that there was when `newest` was the newest.
struct known_code {
  const travelling_code* newest;
  const known_code* before;  // stays: others may be looking into it
  std::unordered_map<code_identity, const wire_type*> types;
};

}  // namespace

void refuse_node(node_id_t node, const worker& w) {
  if (w.owner == nullptr) throw misuse_error("a fiber operation outside a runtime");
  const unsigned nodes = w.nodes.load(std::memory_order_relaxed);
  throw misuse_error(
      "no node " + std::to_string(node) + ": this job has " +
      (nodes == 1 ? "one node, number " + std::to_string(w.node)
                  : std::to_string(nodes) + " nodes, numbers 0 to " + std::to_string(nodes - 1)));
}

void refuse_far_address(global_address a, const worker& w, const char* instead) {
  if (w.owner == nullptr || !is_there(w, a.node())) refuse_node(a.node(), w);
  throw misuse_error("what a global_ptr points to lies on node " + std::to_string(a.node()) +
                     ", this is node " + std::to_string(w.node) + ": " + instead);
}

void refuse_nowhere(const char* what) {
  throw misuse_error(std::string(what) + " points nowhere: give it the address of something first");
}

void refuse_elements(std::size_t count, std::size_t element_bytes) {
  throw misuse_error("a block of " + std::to_string(count) + " elements of " +
                     std::to_string(element_bytes) +
                     " bytes is larger than any memory: is its count a difference below 0?");
}

void refuse_outside_nodes() {
  throw misuse_error(
      "no node outside a runtime, of which node_id(), to_global(), to_sptr() and calls on nodes "
      "need one: call it from within strata::runtime::run()");
}

void refuse_node_number(const std::string& number) {
  throw misuse_error("no node " + number + ": nodes have numbers from 0 to " +
                     std::to_string(std::numeric_limits<node_id_t>::max()));
}

// All of these take locks that whoever else runs here may want: a preemptible thread is not
// interrupted meanwhile.
void remote_signal(worker& w, global_address slot) {
  const uninterrupted guard;
  other_nodes(w, slot.node()).signal(slot);
}

void remote_increment(worker& w, global_address slot, std::uint32_t more) {
  const uninterrupted guard;
  other_nodes(w, slot.node()).increment(slot, more);
}

void remote_put(worker& w, global_address to, const void* value, std::size_t bytes,
                global_address slot) {
  const uninterrupted guard;
  if (bytes != 0) check_somewhere("the global_ptr to get from", value);
  remote_nodes& others = other_nodes(w, to.node());
  check_slot(w, slot);
  others.put(to, value, bytes, slot);
}

void remote_get(worker& w, global_address from, void* into, std::size_t bytes,
                global_address slot) {
  const uninterrupted guard;
  remote_nodes& others = other_nodes(w, from.node());
  check_slot(w, slot);
  others.get(from, into, bytes, slot);
}

void remote_invoke(worker& w, std::uint16_t node, task* token) {
  const uninterrupted guard;
  if (!is_there(w, node)) {
    token->type->abandon(*token, w);
    refuse_node(node, w);
  }
  w.others->invoke(w, node, token);
}

void call_on(node_id_t node, task& t, std::span<const std::byte> more) {
  const uninterrupted guard;
  worker& w = this_worker();
  other_nodes(w, node).call(w, node, t, more);
}

// By its name, as all that is thrown on another node. One that a call of that thread's brought
// there has left another node before.
bool is_exit(const remote_error& e) noexcept {
  return e.hops() == 1 && e.type_name() == "strata::detail::thread_exit";
}

void remote_drop_in(worker& w, global_address box, const void* item, std::size_t bytes) {
  const uninterrupted guard;
  other_nodes(w, box.node()).drop_in(box, item, bytes);
}

void give_back_result(global_address home, const std::exception_ptr& error, const void* value,
                      std::size_t bytes) {
  const uninterrupted guard;
  // The call came from another node, so there are others, unless the job has ended meanwhile.
  worker& w = this_worker();
  if (w.others == nullptr) return;
  try {
    w.others->give_back(home, error, value, bytes);
  } catch (const node_lost_error&) {
    // Whoever called hears of the loss without us.
  }
}

travelling_code::travelling_code(const wire_type& type, const char* module_begin) noexcept
    : type_(type),
      // 48 bits of place, 16 of name.
      identity_((static_cast<std::uint64_t>(reinterpret_cast<const char*>(&type) - module_begin) &
                 0xffff'ffff'ffffU) |
                text_hash(type.name()) << 48),
      next_(all_code.load(std::memory_order_relaxed)) {
  all_code.store(this, std::memory_order_release);
  note_module(module_begin);
}

std::vector<const void*> modules_of_travelling_code() {
  std::vector<const void*> all;
  for (const std::atomic<const char*>& m : code_modules) {
    if (const char* const begin = m.load(std::memory_order_acquire)) all.push_back(begin);
  }
  return all;
}

const wire_type* travelling_code::find(code_identity identity) noexcept {
  static constinit std::atomic<const known_code*> known{nullptr};
  for (;;) {
    // Acquire: what it holds. Partner: the exchange below.
    const known_code* const now = known.load(std::memory_order_acquire);
    if (now != nullptr) {
      const auto found = now->types.find(identity);
      if (found != now->types.end()) return found->second;
    }
    const travelling_code* const newest = all_code.load(std::memory_order_acquire);
    if (now != nullptr && now->newest == newest) return nullptr;
    // The first time, or a library has been loaded since.
    auto fresh = std::make_unique<known_code>(known_code{newest, now, {}});
    for (const travelling_code* c = newest; c != nullptr; c = c->next_)
      fresh->types.emplace(c->identity_, &c->type_);
    const known_code* expected = now;
    if (known.compare_exchange_strong(expected, fresh.get(), std::memory_order_release,
                                      std::memory_order_relaxed)) {
      (void)fresh.release();
    }
  }
}

}  // namespace strata::detail
