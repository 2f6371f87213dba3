// SPDX-License-Identifier: Apache-2.0
#include "net/shm/shm_transport.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <mutex>

#include "net/causality.hpp"
#include "net/shm/reading_pace.hpp"
#include "net/shm/shelf.hpp"
#include "net/shm/sleepers.hpp"
#include "os/clock.hpp"
#include "os/futex.hpp"
#include "os/memory_file.hpp"
#include "os/pages.hpp"
#include "strata/detail/check.hpp"

namespace strata::net::shm {
namespace {

// A ring is larger than a core's own cache, so that what is written over has left the reader's: a
// line that lies there costs the writer several times what one from memory does (decision 14).
// What nobody has written to takes no memory. Where many nodes share a host they share this much.
constexpr std::size_t ring_bytes_most = std::size_t{4} << 20;
constexpr std::size_t ring_bytes_least = std::size_t{256} << 10;
constexpr std::size_t host_bytes = std::size_t{64} << 20;
// A reader gives room back in steps of an eighth, so that telling the writer costs nothing per
// message; what is left must hold the largest record twice (a skipped end and the record).
constexpr std::size_t release_part = 8;
static_assert(ring_bytes_least - ring_bytes_least / release_part >=
              2 * record_bytes(payload_bytes_max));

// Several messages of 64 bytes are written in it, and it is less than an answer takes.
constexpr std::int64_t moment_ns = 300;
std::uint64_t moment_ticks() { return os::to_ticks(moment_ns); }

constexpr const char* without_memory = "use --transport tcp, or free memory";

// A sender that only waits for its own node costs its peers no system call when they have read. As
// with sleepers.hpp, who has called it may die before it has woken it.
enum sleeping_sender : std::uint32_t { awake = 0, wants_calls = 1, wants_room = 2, called = 3 };

}  // namespace

// Per node, written by itself and by its peers.
struct shm_transport::shared_node {
  sleepers<std::atomic> sleeping;
  // One of sleeping_sender: what the sender sleeps for, or is about to.
  alignas(detail::destructive_bytes) os::futex_word sender_asleep;
  // What it offers; taken by its peers.
  shelf<std::atomic, shelves::places_max, shelves::bytes_max / sizeof(std::uint64_t)> offers;
  // Of what it fetches.
  joint_copies::copy copies[joint_copies::copies_each];
};

struct shm_transport::peer {
  node_id node;
  shared_node* shared;
  std::mutex writing;  // several threads of this node send to one peer
  ring_writer out;
  std::uint32_t out_sequence = 0;
  std::atomic<std::uint64_t> messages_out{0};  // written with the lock; a hint to `pace`
  std::uint64_t bytes_out = 0;
  std::atomic<bool> refused{false};  // somebody waits for room in `out`
  std::atomic<bool> lost{false};
  ring_reader in;
  std::uint32_t in_sequence = 0;
  reading_pace pace{moment_ticks()};
};

std::size_t ring_bytes_for(std::size_t nodes) noexcept {
  std::size_t bytes = ring_bytes_most;
  while (bytes > ring_bytes_least && nodes * (nodes - 1) * bytes > host_bytes) bytes /= 2;
  return bytes;
}

shm_transport::shm_transport(const settings& s)
    : self_(s.self),
      places_(s.nodes),
      ring_bytes_(s.ring_bytes != 0 ? s.ring_bytes : ring_bytes_for(s.nodes.size())) {
  const std::size_t n = places_.size();
  bytes_ = head_bytes(n) + n * n * ring_bytes_;
  // Each node asks for the same size, so it does not matter who comes first. What nobody touches
  // takes no memory.
  os::resize_memory_file(s.memory, bytes_,
                         "cannot size the memory shared by the nodes of this host", without_memory);
  memory_ = static_cast<std::byte*>(os::map_memory_file(
      s.memory, bytes_, "cannot map the memory shared by the nodes of this host", without_memory));

  me_ = place_of(s.self);
  STRATA_CHECK(me_ < n, me_, n);
  mine_ = &reinterpret_cast<shared_node*>(memory_)[me_];
  peers_.resize(n - 1);
  numbers_ = std::size_t{*std::max_element(places_.begin(), places_.end())} + 1;
  by_node_ = std::make_unique<std::atomic<peer*>[]>(numbers_);
  for (const node_id node : places_) {
    if (node != self_ && std::find(s.later.begin(), s.later.end(), node) == s.later.end())
      add_peer(node);
  }
}

// Rings begin with a page, however large those are: the kernel takes back whole ones.
std::size_t shm_transport::head_bytes(std::size_t n) noexcept {
  return os::round_up_to_pages(n * sizeof(shared_node) + n * n * sizeof(ring_words));
}

std::size_t shm_transport::place_of(node_id node) const noexcept {
  return static_cast<std::size_t>(std::find(places_.begin(), places_.end(), node) -
                                  places_.begin());
}

std::byte* shm_transport::ring_data(std::size_t from, std::size_t to) const noexcept {
  const std::size_t n = places_.size();
  return memory_ + head_bytes(n) + (from * n + to) * ring_bytes_;
}

// The memory of a host's nodes is there as long as the last of them, and no number is given out
// again. Whoever was about to say something to this one may still do so.
void shm_transport::give_back_rings() noexcept {
  for (const auto& p : peers_now()) {
    const std::size_t i = place_of(p->node);
    (void)::madvise(ring_data(me_, i), ring_bytes_, MADV_REMOVE);
    (void)::madvise(ring_data(i, me_), ring_bytes_, MADV_REMOVE);
  }
}

void shm_transport::add_peer(node_id node) {
  const std::size_t n = places_.size();
  auto* const words = reinterpret_cast<ring_words*>(memory_ + n * sizeof(shared_node));
  const std::size_t i = place_of(node);
  auto p = std::make_unique<peer>();
  p->node = node;
  p->shared = &reinterpret_cast<shared_node*>(memory_)[i];
  const auto at = [&](std::size_t from, std::size_t to) { return from * n + to; };
  p->out = ring_writer(&words[at(me_, i)], ring_data(me_, i), ring_bytes_);
  p->in.attach(&words[at(i, me_)], ring_data(i, me_), ring_bytes_);
  by_node_[node].store(p.get(), std::memory_order_release);
  const std::size_t count = peer_count_.load(std::memory_order_relaxed);
  peers_[count] = std::move(p);
  peer_count_.store(count + 1, std::memory_order_release);
}

void shm_transport::admit(node_id node) {
  STRATA_CHECK(node < numbers_ && find(node) == nullptr, node, numbers_);
  add_peer(node);
  wake_receiver();  // it may have said something already
}

shm_transport::~shm_transport() {
  if (has_left_) give_back_rings();
  ::munmap(memory_, bytes_);
}

shm_transport::peer* shm_transport::find(node_id node) const noexcept {
  return node < numbers_ ? by_node_[node].load(std::memory_order_acquire) : nullptr;
}

bool shm_transport::reaches(node_id node) const noexcept { return find(node) != nullptr; }

send_outcome shm_transport::try_send(node_id to, header h, std::span<const std::byte> head,
                                     std::span<const std::byte> body) {
  peer* const p = find(to);
  if (p == nullptr || p->lost.load(std::memory_order_relaxed)) return send_outcome::lost;
  h.length = static_cast<std::uint32_t>(head.size() + body.size());
  STRATA_CHECK(h.length <= payload_bytes_max, h.length);
  {
    const std::lock_guard lock(p->writing);
    h.sequence = p->out_sequence;
    if (!p->out.write(h, head, body)) {
      p->refused.store(true, std::memory_order_seq_cst);
      return send_outcome::would_block;
    }
    ++p->out_sequence;
    p->messages_out.store(p->messages_out.load(std::memory_order_relaxed) + 1,
                          std::memory_order_relaxed);
    p->bytes_out += sizeof(h) + h.length;
  }
  if (os::futex_word* const w = p->shared->sleeping.to_wake()) {
    os::futex_wake_shared(*w, 1);
    wakes_.fetch_add(1, std::memory_order_relaxed);
  }
  return send_outcome::sent;
}

void shm_transport::lose(peer& p, receiver& r, const char* why) {
  if (!p.lost.exchange(true, std::memory_order_seq_cst)) r.on_lost(p.node, why);
}

std::size_t shm_transport::poll(receiver& r, std::size_t messages_max) {
  std::size_t handed_over = 0;
  std::uint64_t bytes = 0;
  const auto peers = peers_now();
  const std::size_t n = peers.size();
  for (std::size_t i = 0; i < n && handed_over < messages_max; ++i) {
    peer& p = *peers[(next_ + i) % n];
    header h;
    std::span<const std::byte> payload;
    // Whom on_message() may drop.
    while (handed_over < messages_max && !p.lost.load(std::memory_order_relaxed)) {
      const bool looks = p.in.has_read_all();
      const std::uint64_t sent = p.messages_out.load(std::memory_order_relaxed);
      // Looked it has to be in the end: after unattended() nobody else does.
      if (looks && p.pace.leaves_alone(sent)) {
        while (!p.pace.is_time(os::ticks())) os::spin_pause();
      }
      const auto outcome = p.in.read(h, payload);
      if (outcome == ring_reader::outcome::empty) break;
      if (looks)
        p.pace.found(payload.size(), sent, os::ticks);
      else
        p.pace.found_more();
      if (outcome == ring_reader::outcome::malformed || h.source != p.node ||
          h.destination != self_ || h.sequence != p.in_sequence) {
        lose(p, r, "its memory holds a malformed message");
        break;
      }
      ++p.in_sequence;
      ++handed_over;
      bytes += sizeof(h) + h.length;
      r.on_message(h, payload);
      if (p.in.held() >= ring_bytes_ / release_part) {
        p.in.release();
        std::uint32_t seen = p.shared->sender_asleep.load(std::memory_order_seq_cst);
        if (seen == wants_room && p.shared->sender_asleep.compare_exchange_strong(
                                      seen, called, std::memory_order_seq_cst)) {
          os::futex_wake_shared(p.shared->sender_asleep, 1);
        }
      }
    }
  }
  if (n != 0) next_ = (next_ + 1) % n;
  if (handed_over != 0) {
    messages_in_.store(messages_in_.load(std::memory_order_relaxed) + handed_over,
                       std::memory_order_relaxed);
    bytes_in_.store(bytes_in_.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
  }
  return handed_over;
}

bool shm_transport::anything_arrived() noexcept {
  const auto peers = peers_now();
  return std::any_of(peers.begin(), peers.end(), [](auto& p) {
    return !p->lost.load(std::memory_order_relaxed) && p->in.has_something();
  });
}

void shm_transport::wait_for_messages(std::int64_t timeout_ns) {
  mine_->sleeping.sleep_as_receiver(
      [this] { return receiver_called_.exchange(false, std::memory_order_seq_cst); },
      [this] { return anything_arrived(); },
      [&](os::futex_word& word, std::uint32_t value) {
        os::blocking_futex_wait_shared(word, value, timeout_ns);
      });
  remind_stand_in();
}

void shm_transport::wake_receiver() noexcept {
  receiver_called_.store(true, std::memory_order_seq_cst);
  if (os::futex_word* const w = mine_->sleeping.call_receiver()) os::futex_wake_shared(*w, INT_MAX);
}

transport::stand_in_outcome shm_transport::stand_in(os::futex_word& own,
                                                    std::uint32_t expected) noexcept {
  const auto is_dismissed = [this] { return stand_in_dismissed_.load(std::memory_order_seq_cst); };
  if (!os::can_wait_on_two()) return stand_in_outcome::not_here;
  const bool looks = mine_->sleeping.sleep_as_stand_in(
      is_dismissed, [this] { return anything_arrived(); },
      [&](os::futex_word& word, std::uint32_t value) {
        os::blocking_futex_wait_on_two(own, expected, word, value);
      });
  if (!looks) return is_dismissed() ? stand_in_outcome::not_here : stand_in_outcome::left;
  mine_->sleeping.attended();
  return stand_in_outcome::is_to_poll;
}

void shm_transport::dismiss_stand_in() noexcept {
  stand_in_dismissed_.store(true, std::memory_order_seq_cst);
  if (os::futex_word* const w = mine_->sleeping.call_stand_in())
    os::futex_wake_shared(*w, 1);
  else
    remind_stand_in();
}

void shm_transport::remind_stand_in() noexcept {
  if (os::futex_word* const w = mine_->sleeping.remind_stand_in()) os::futex_wake_shared(*w, 1);
}

void shm_transport::attended() noexcept { mine_->sleeping.attended(); }

bool shm_transport::unattended() noexcept {
  mine_->sleeping.unattended();
  return true;
}

void shm_transport::wait_for_room(std::int64_t timeout_ns) {
  const auto peers = peers_now();
  const auto is_refused = [](const auto& p) { return p->refused.load(std::memory_order_seq_cst); };
  const std::uint32_t asleep =
      std::any_of(peers.begin(), peers.end(), is_refused) ? wants_room : wants_calls;
  mine_->sender_asleep.store(asleep, std::memory_order_seq_cst);
  // Announced; now look once more. Partner: poll(), which releases and then looks for us.
  bool room = sender_called_.exchange(false, std::memory_order_seq_cst);
  for (const auto& p : peers) {
    if (!is_refused(p)) continue;
    const std::lock_guard lock(p->writing);
    if (p->lost.load(std::memory_order_relaxed) ||
        p->out.has_room(2 * record_bytes(payload_bytes_max))) {
      p->refused.store(false, std::memory_order_relaxed);
      room = true;
    }
  }
  if (!room) os::blocking_futex_wait_shared(mine_->sender_asleep, asleep, timeout_ns);
  mine_->sender_asleep.store(awake, std::memory_order_relaxed);
}

void shm_transport::wake_sender() noexcept {
  sender_called_.store(true, std::memory_order_seq_cst);
  std::uint32_t seen = mine_->sender_asleep.load(std::memory_order_seq_cst);
  while ((seen == wants_calls || seen == wants_room) &&
         !mine_->sender_asleep.compare_exchange_weak(seen, called, std::memory_order_seq_cst)) {
  }
  if (seen != awake) os::futex_wake_shared(mine_->sender_asleep, INT_MAX);
}

// ---- shelves ----

unsigned shm_transport::offer(std::span<const std::byte> bytes, unsigned limit) noexcept {
  const leaving_message message(bytes);
  return mine_->offers.put(message.body(), limit);
}

taken_thing shm_transport::take_back(std::byte* into) noexcept {
  return mine_->offers.take_back(into);
}

void shm_transport::set_attended(bool attended) noexcept { mine_->offers.set_attended(attended); }

unsigned shm_transport::offered() const noexcept { return mine_->offers.size(); }

taken_thing shm_transport::take(node_id node, std::byte* into) noexcept {
  const peer* const p = find(node);
  if (p == nullptr || p->lost.load(std::memory_order_relaxed)) return {};
  const taken_thing t = p->shared->offers.take(into);
  message_arrives();
  return t;
}

// ---- joint copies ----

joint_copies::copy* shm_transport::copies_of(node_id node) noexcept {
  if (node == self_) return mine_->copies;
  const peer* const p = find(node);
  return p == nullptr ? nullptr : p->shared->copies;
}

bool shm_transport::is_attended(node_id node) const noexcept {
  const peer* const p = find(node);
  return p != nullptr && p->shared->sleeping.is_attended();
}

void shm_transport::drop(node_id node) noexcept {
  if (peer* const p = find(node)) p->lost.store(true, std::memory_order_seq_cst);
  // It may have called them and not woken them.
  remind_stand_in();
  wake_receiver();
  wake_sender();
}

transport::traffic shm_transport::counted() const noexcept {
  traffic t;
  for (const auto& p : peers_now()) {
    const std::lock_guard lock(p->writing);
    t.messages_out += p->messages_out.load(std::memory_order_relaxed);
    t.bytes_out += p->bytes_out;
  }
  t.writes = t.messages_out;
  t.messages_in = messages_in_.load(std::memory_order_relaxed);
  t.bytes_in = bytes_in_.load(std::memory_order_relaxed);
  t.wakes = wakes_.load(std::memory_order_relaxed);
  return t;
}

}  // namespace strata::net::shm
