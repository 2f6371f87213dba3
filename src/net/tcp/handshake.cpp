// SPDX-License-Identifier: Apache-2.0
#include "net/tcp/handshake.hpp"

#include <sodium.h>

#include <cstring>
#include <utility>

#include "strata/detail/check.hpp"

namespace strata::net::tcp {

namespace {

// The last character counts versions of the handshake itself, which must stay understandable when
// everything else changes.
constexpr char magic[] = "STRATA\n1";

// Different for each direction, so that a MAC of one is never one of the other.
constexpr char connector_label[] = "strata join, connector";
constexpr char acceptor_label[] = "strata join, acceptor ";
static_assert(sizeof connector_label == sizeof acceptor_label);

static_assert(crypto_auth_hmacsha256_BYTES == 32);
static_assert(crypto_auth_hmacsha256_KEYBYTES == 32);

template <class T>
T number_at(const std::byte* from) noexcept {
  T value;
  std::memcpy(&value, from, sizeof value);  // the wire is little-endian, and so are we: wire.hpp
  return value;
}

std::string printable(std::string text) {
  for (char& c : text) {
    if (c < ' ' || c > '~') c = '?';
  }
  return text;
}

nonce mac_of(const identity& me, const char* label, std::span<const std::byte> transcript) {
  crypto_auth_hmacsha256_state state;
  nonce mac;
  crypto_auth_hmacsha256_init(&state, me.key.data(), me.key.size());
  crypto_auth_hmacsha256_update(&state, reinterpret_cast<const unsigned char*>(label),
                                sizeof connector_label);
  crypto_auth_hmacsha256_update(&state, reinterpret_cast<const unsigned char*>(transcript.data()),
                                transcript.size());
  crypto_auth_hmacsha256_final(&state, mac.data());
  sodium_memzero(&state, sizeof state);
  return mac;
}

}  // namespace

const char* name_of(refusal r) noexcept {
  switch (r) {
    case refusal::none:
      return "none";
    case refusal::not_strata:
      return "not_strata";
    case refusal::wrong_key:
      return "wrong_key";
    case refusal::other_version:
      return "other_version";
    case refusal::other_build:
      return "other_build";
    case refusal::wrong_job:
      return "wrong_job";
    case refusal::bad_node:
      return "bad_node";
    case refusal::duplicate_node:
      return "duplicate_node";
  }
  return "unknown";
}

nonce fresh_nonce() {
  STRATA_CHECK(sodium_init() >= 0);  // fails only without a source of randomness
  nonce n;
  randombytes_buf(n.data(), n.size());
  return n;
}

handshake::handshake(const identity& me, bool connects, const nonce& n)
    : me_(&me), connects_(connects), nonce_(n) {
  STRATA_CHECK(me.build_id.size() <= build_id_bytes_max, me.build_id.size());
}

handshake handshake::connector(const identity& me, node_id peer, const nonce& n) {
  handshake h(me, true, n);
  h.peer_ = peer;
  h.speak();
  return h;
}

handshake handshake::acceptor(const identity& me, std::function<bool(node_id)> has_joined,
                              const nonce& n) {
  handshake h(me, false, n);
  h.has_joined_ = std::move(has_joined);
  return h;
}

bool handshake::ours(step s) const noexcept {
  return (s == step::hello || s == step::proof) == connects_;
}

std::size_t handshake::step_bytes() const noexcept {
  switch (step_) {
    case step::hello:
      return hello_bytes;
    case step::challenge:
      return challenge_bytes;
    case step::proof:
      return proof_bytes;
    case step::verdict:
      return verdict_bytes;
    case step::over:
      break;
  }
  return 0;
}

handshake::state handshake::now() const noexcept {
  if (step_ != step::over) return state::talking;
  return reason_ == refusal::none ? state::joined : state::refused;
}

std::span<const std::byte> handshake::outgoing() const noexcept {
  if (step_ == step::over || !ours(step_)) return {};
  return std::span(transcript_).subspan(done_, begin_ + step_bytes() - done_);
}

void handshake::sent(std::size_t bytes) {
  STRATA_CHECK(bytes <= outgoing().size(), bytes, outgoing().size());
  done_ += bytes;
  if (done_ == begin_ + step_bytes()) next_step();
}

std::size_t handshake::wanted() const noexcept {
  if (step_ == step::over || ours(step_)) return 0;
  return begin_ + step_bytes() - done_;
}

void handshake::received(std::span<const std::byte> bytes) {
  STRATA_CHECK(bytes.size() <= wanted(), bytes.size(), wanted());
  if (bytes.empty()) return;
  std::memcpy(transcript_.data() + done_, bytes.data(), bytes.size());
  done_ += bytes.size();
  // A stranger is known by its first wrong byte; waiting for the rest would keep it here.
  if (step_ == step::hello &&
      std::memcmp(transcript_.data(), magic, done_ < magic_bytes ? done_ : magic_bytes) != 0) {
    return refuse(refusal::not_strata);
  }
  if (done_ == begin_ + step_bytes()) listen();
}

void handshake::next_step() {
  begin_ += step_bytes();
  size_ = done_ = begin_;
  step_ = static_cast<step>(static_cast<std::uint8_t>(step_) + 1);
  if (step_ != step::over && ours(step_)) speak();
}

// Writes our message of this step.
void handshake::speak() {
  switch (step_) {
    case step::hello:
      add(magic, magic_bytes);
      [[fallthrough]];
    case step::challenge:
      add(nonce_.data(), nonce_.size());
      break;
    case step::verdict:
      add(&reason_, 1);
      [[fallthrough]];
    case step::proof:
      add_claims();
      add_mac();
      break;
    case step::over:
      break;
  }
  STRATA_CHECK(size_ == begin_ + step_bytes(), size_, begin_);
}

// Judges the other side's message of this step, which is complete.
void handshake::listen() {
  if (step_ == step::proof) {
    if (!mac_is_right()) return refuse(refusal::wrong_key);
    theirs_ = claims_at(begin_);
    proved_ = true;
    peer_ = theirs_.node;
    reason_ = judge(theirs_);
  } else if (step_ == step::verdict) {
    if (!mac_is_right()) return refuse(refusal::wrong_key);
    theirs_ = claims_at(begin_ + 1);
    proved_ = true;
    const auto verdict = number_at<std::uint8_t>(transcript_.data() + begin_);
    const bool known = verdict <= static_cast<std::uint8_t>(refusal::duplicate_node);
    // A reason that we do not know can only come from another version.
    reason_ = known ? static_cast<refusal>(verdict) : refusal::other_version;
    if (reason_ == refusal::none) reason_ = judge(theirs_);
  }
  next_step();
}

refusal handshake::judge(const claims& other) const {
  // In the order in which one makes sense of the next.
  if (other.version != me_->version) return refusal::other_version;
  if (other.build_id != me_->build_id) return refusal::other_build;
  if (other.job != me_->job) return refusal::wrong_job;
  if (other.nodes != me_->nodes || other.peer != me_->node || other.node >= me_->nodes) {
    return refusal::bad_node;
  }
  if (connects_) return other.node == peer_ ? refusal::none : refusal::bad_node;
  // Who has the smaller number accepts; so two nodes never connect to each other at once.
  if (other.node <= me_->node) return refusal::bad_node;
  return has_joined_(other.node) ? refusal::duplicate_node : refusal::none;
}

void handshake::refuse(refusal why) {
  reason_ = why;
  step_ = step::over;
}

void handshake::add(const void* from, std::size_t bytes) {
  STRATA_CHECK(bytes <= transcript_.size() - size_, bytes, size_);
  std::memcpy(transcript_.data() + size_, from, bytes);
  size_ += bytes;
}

void handshake::add_claims() {
  add(&me_->version, 4);
  add(&me_->job, 8);
  add(&me_->node, 2);
  add(&peer_, 2);
  add(&me_->nodes, 2);
  const auto length = static_cast<std::uint8_t>(me_->build_id.size());
  add(&length, 1);
  std::array<char, build_id_bytes_max> id{};
  me_->build_id.copy(id.data(), id.size());
  add(id.data(), id.size());
}

handshake::claims handshake::claims_at(std::size_t offset) const {
  const std::byte* const p = transcript_.data() + offset;
  claims c;
  c.version = number_at<std::uint32_t>(p);
  c.job = number_at<std::uint64_t>(p + 4);
  c.node = number_at<node_id>(p + 12);
  c.peer = number_at<node_id>(p + 14);
  c.nodes = number_at<node_id>(p + 16);
  const std::size_t length = number_at<std::uint8_t>(p + 18);
  c.build_id.assign(reinterpret_cast<const char*>(p + 19),
                    length < build_id_bytes_max ? length : build_id_bytes_max);
  return c;
}

void handshake::add_mac() {
  const char* const label = connects_ ? connector_label : acceptor_label;
  const nonce mac = mac_of(*me_, label, std::span(transcript_).first(size_));
  add(mac.data(), mac.size());
}

bool handshake::mac_is_right() const {
  const char* const label = connects_ ? acceptor_label : connector_label;
  const std::size_t at = begin_ + step_bytes() - mac_bytes;
  const nonce mac = mac_of(*me_, label, std::span(transcript_).first(at));
  return sodium_memcmp(mac.data(), transcript_.data() + at, mac_bytes) == 0;
}

std::string handshake::explanation() const {
  switch (reason_) {
    case refusal::none:
      return "is welcome";
    case refusal::not_strata:
      return "does not speak Strata's protocol";
    case refusal::wrong_key:
      return "does not know this job's key";
    case refusal::other_version:
      return "speaks version " + std::to_string(theirs_.version) + " of the protocol, this node " +
             std::to_string(me_->version) + ": start all nodes from the same build";
    case refusal::other_build:
      // The other side chose these characters; a terminal must not obey them.
      return "runs another build (" + printable(theirs_.build_id) + "), this node " +
             me_->build_id + ": start all nodes from the same program";
    case refusal::wrong_job:
      return "belongs to another job";
    case refusal::bad_node:
      return "is node " + std::to_string(theirs_.node) + " of " + std::to_string(theirs_.nodes) +
             " and speaks to node " + std::to_string(theirs_.peer) + ", this is node " +
             std::to_string(me_->node) + " of " + std::to_string(me_->nodes);
    case refusal::duplicate_node:
      return connects_ ? "says that node " + std::to_string(me_->node) + " has joined already"
                       : "has joined already";
  }
  return "is refused";
}

}  // namespace strata::net::tcp
