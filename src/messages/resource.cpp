// SPDX-License-Identifier: Apache-2.0
#include "strata/resource.hpp"

#include <algorithm>
#include <utility>

#include "messages/messenger.hpp"
#include "messages/office.hpp"

namespace strata {

// ---- objects with names ----

namespace detail {

object_entry::object_entry(void* object) : number_(0) {
  messages::messenger& office = messages::office_or_refusal(
      "an object with a name can only be made within a runtime (runtime::run())");
  number_ = office.names.new_publication(this_worker().node);
  office.objects->enter(number_, object);
  among_ = office.objects;
}

object_entry::~object_entry() {
  // Only where the name could not be published: nobody knows the number.
  if (among_ != nullptr) (void)end();
}

bool object_entry::end() noexcept { return std::exchange(among_, nullptr)->end(number_); }

held_object::held_object(std::uint64_t number, void* object)
    : number_(number),
      object_(number == 0 ? object : messages::office_here()->objects->hold(number)) {}

held_object::~held_object() {
  if (number_ != 0 && object_ != nullptr) messages::office_here()->objects->let_go(number_);
}

unparked park_in_job(const parking& how) {
  messages::messenger* const office = messages::office_here();
  return office != nullptr ? office->waits.park(how) : park(how);
}

void require_whole_job() {
  if (const messages::messenger* const office = messages::office_here())
    office->waits.require_all_nodes();
}

void refuse_ended_resource(node_id_t node) {
  throw resource_ended_error(
      node, "a call on an object of node " + std::to_string(node) +
                " that has ended: look its name up again, or end it after the last call");
}

void refuse_no_resource() {
  throw misuse_error("a call on a resource that refers to nothing; find() or await() gives one");
}

}  // namespace detail

// ---- domains ----

namespace {

// No member can be there any more.
bool has_gone(endpoint_id member) {
  const messages::messenger* const office = messages::office_here();
  return office != nullptr && !office->has(member.node());
}

}  // namespace

void domain::drop(endpoint_id& member) {
  member = endpoint_id();
  --members_;
}

void domain::drop_those_who_have_left() {
  for (endpoint_id& member : by_rank_) {
    if (member && has_gone(member)) drop(member);
  }
  while (!by_rank_.empty() && !by_rank_.back()) by_rank_.pop_back();
}

std::uint32_t domain::join(endpoint_id who) {
  if (!who) throw misuse_error("no endpoint can join a domain: give the id() of one");
  const std::lock_guard lock(mutex_);
  drop_those_who_have_left();
  if (has_gone(who))
    throw misuse_error("an endpoint of node " + std::to_string(who.node()) +
                       ", which has left the job, cannot join a domain");
  auto place = std::find(by_rank_.begin(), by_rank_.end(), who);
  if (place == by_rank_.end()) {
    place = std::find(by_rank_.begin(), by_rank_.end(), endpoint_id());
    if (place == by_rank_.end()) place = by_rank_.insert(by_rank_.end(), who);
    *place = who;
    ++members_;
    joins_.fetch_add(1, std::memory_order_relaxed);
    detail::unpark(&joins_, UINT32_MAX);
  }
  return static_cast<std::uint32_t>(place - by_rank_.begin());
}

bool domain::leave(endpoint_id who) {
  const std::lock_guard lock(mutex_);
  drop_those_who_have_left();
  const auto place = std::find(by_rank_.begin(), by_rank_.end(), who);
  if (!who || place == by_rank_.end()) return false;
  drop(*place);
  while (!by_rank_.empty() && !by_rank_.back()) by_rank_.pop_back();
  return true;
}

std::uint32_t domain::size() {
  const std::lock_guard lock(mutex_);
  drop_those_who_have_left();
  return members_;
}

void domain::await_size(std::uint32_t n) {
  struct {
    const std::atomic<std::uint32_t>* joins;
    std::uint32_t seen;
  } question{&joins_, 0};
  // Asked with the address's queue locked: whoever joins afterwards finds who waits there.
  const auto nobody_has_joined = [](void* q) {
    const auto& it = *static_cast<const decltype(question)*>(q);
    return it.joins->load(std::memory_order_relaxed) == it.seen;
  };
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      drop_those_who_have_left();
      if (members_ >= n) return;
      question.seen = joins_.load(std::memory_order_relaxed);
    }
    // Those who leave with their node wake nobody: they make no domain larger.
    (void)detail::park_in_job({.what = "members of a domain",
                               .address = &joins_,
                               .still = nobody_has_joined,
                               .argument = &question});
  }
}

domain::page domain::members_from(std::uint32_t rank) {
  const std::lock_guard lock(mutex_);
  drop_those_who_have_left();
  page p{.ranks = static_cast<std::uint32_t>(by_rank_.size())};
  for (std::uint32_t i = 0; i < page::length && rank + i < p.ranks; ++i)
    p.members[i] = by_rank_[rank + i];
  return p;
}

std::vector<endpoint_id> domain_handle::members() {
  std::vector<endpoint_id> all;
  // Wider than what is asked for: the end is another node's word.
  for (std::uint64_t rank = 0;; rank += domain::page::length) {
    const domain::page p = d_.call<&domain::members_from>(static_cast<std::uint32_t>(rank));
    for (std::uint32_t i = 0; i < domain::page::length && rank + i < p.ranks; ++i)
      all.push_back(p.members[i]);
    if (rank + domain::page::length >= p.ranks) return all;
  }
}

void semaphore_handle::release(std::ptrdiff_t n) {
  if (n < 0) throw misuse_error("release() of " + std::to_string(n) + " units: a number from 0 on");
  s_.call<&put_back>(n);
}

// ---- grids ----

unsigned grid::dimensions() const noexcept {
  unsigned n = 0;
  while (n < extent.size() && extent[n] != 0) ++n;
  return n;
}

std::uint32_t grid::size() const {
  std::uint64_t n = 1;
  for (unsigned d = 0; d < dimensions(); ++d) {
    n *= extent[d];  // of two numbers of 32 bits
    if (n > UINT32_MAX) throw misuse_error("a grid of 2^32 ranks or more");
  }
  return static_cast<std::uint32_t>(n);
}

std::array<std::uint32_t, 4> grid::coordinates(std::uint32_t rank) const {
  if (rank >= size())
    throw misuse_error("rank " + std::to_string(rank) + " in a grid of " + std::to_string(size()));
  std::array<std::uint32_t, 4> at{};
  for (unsigned d = dimensions(); d-- > 0; rank /= extent[d]) at[d] = rank % extent[d];
  return at;
}

std::uint32_t grid::rank(std::span<const std::uint32_t> at) const {
  (void)size();
  for (std::size_t d = dimensions(); d < at.size(); ++d) {
    if (at[d] != 0) throw misuse_error("more coordinates than the grid has dimensions");
  }
  std::uint32_t r = 0;
  for (unsigned d = 0; d < dimensions(); ++d) {
    if (d >= at.size() || at[d] >= extent[d]) throw misuse_error("coordinates outside their grid");
    r = r * extent[d] + at[d];
  }
  return r;
}

std::vector<std::uint32_t> grid::neighbours(std::uint32_t rank) const {
  const auto here = coordinates(rank);
  std::vector<std::uint32_t> found;
  for (unsigned d = 0; d < dimensions(); ++d) {
    for (const bool up : {false, true}) {
      const bool at_end = here[d] == (up ? extent[d] - 1 : 0);
      if (at_end && !wraps[d]) continue;
      auto there = here;
      there[d] = (here[d] + (up ? 1 : extent[d] - 1)) % extent[d];
      const std::uint32_t r = this->rank(there);
      // In a ring of one or two, both ways lead to the same.
      if (r != rank && std::find(found.begin(), found.end(), r) == found.end()) found.push_back(r);
    }
  }
  return found;
}

}  // namespace strata
