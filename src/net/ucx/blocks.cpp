// SPDX-License-Identifier: Apache-2.0
// Transfers: active messages by rendezvous, whose bytes UCX takes from where they are to where they
// are expected. It reads the giver's memory or writes the receiver's where a device can do that,
// and the other's memory can be taken away from the device again should a peer be lost; else it
// copies.
//
// Not put and get, which UCX has too: for networks without such devices it answers them in
// software, at any address, and to anybody who reaches its ports. A rendezvous touches only memory
// that was named here. (docs/decisions/0011-rendezvous.md)
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>

#include "net/ucx/reach_of_devices.hpp"
#include "net/ucx/ucx_state.hpp"

namespace strata::net::ucx {

namespace {

// A rendezvous takes a round trip before the first byte.
constexpr std::size_t block_bytes_min = std::size_t{128} << 10;

}  // namespace

std::size_t ucx_transport::state::bytes_min(node_id n) noexcept {
  if (s.transfers == rendezvous::always) return block_bytes_min;
  peer* const p = peers.find(n);
  if (p == nullptr) return never;
  knowledge seen = p->devices_read.load(std::memory_order_relaxed);
  if (seen == knowledge::none) {
    const std::lock_guard held(lock);
    if (!p->greeted || p->lost.load(std::memory_order_relaxed)) return never;  // not for good
    seen = devices_read_memory(ucp, p->endpoint) ? knowledge::yes : knowledge::no;
    p->devices_read.store(seen, std::memory_order_relaxed);
  }
  return seen == knowledge::yes ? block_bytes_min : never;
}

bool ucx_transport::state::expect(node_id n, std::uint64_t number, std::span<std::byte> into) {
  peer* const p = peers.find(n);
  if (p == nullptr) return false;
  const std::lock_guard held(lock);
  if (p->lost.load(std::memory_order_relaxed)) return false;
  STRATA_CHECK(!into.empty(), number);
  const bool is_new = p->expected.emplace(number, into).second;
  STRATA_CHECK(is_new, number);
  return true;
}

bool ucx_transport::state::withdraw(node_id n, std::uint64_t number) noexcept {
  peer* const p = peers.find(n);
  if (p == nullptr) return false;
  const std::lock_guard held(lock);
  return p->expected.erase(number) != 0;
}

ucx_transport::state::block* ucx_transport::state::begin(peer& p, std::uint64_t number, news word,
                                                         std::size_t bytes) {
  auto b = std::make_unique<block>(block{&p, number, word, bytes, {}, {}});
  ++p.blocks;
  if (word == news::block_given) ++gives;
  return b.release();  // end() gets it
}

void ucx_transport::state::end(block* done, ucs_status_t status) {
  const std::unique_ptr<block> b(done);
  peer& p = *b->with;
  --p.blocks;
  if (b->word == news::block_given) --gives;
  registered.let_go(std::move(b->registered));
  filling.end(b->word, p.id, b->number, status == UCS_OK, b->bytes);
  if (p.lost.load(std::memory_order_relaxed)) {
    --lost_blocks;
  } else if (status != UCS_OK) {
    lose_because_of(p, status);
  } else if (b->word == news::block_arrived) {
    unsettle(p);  // UCX has just told the giver
  }
}

void ucx_transport::state::ended(void* request, ucs_status_t status, void* what) {
  block* const done = static_cast<block*>(what);
  state& of = done->with->of;
  of.ucp.ucp_request_free(request);
  of.end(done, status);
}

bool ucx_transport::state::give(node_id n, std::uint64_t number, std::span<const std::byte> bytes,
                                std::uint64_t own_number) {
  peer* const p = peers.find(n);
  if (p == nullptr) return false;
  const std::lock_guard held(lock);
  if (p->lost.load(std::memory_order_relaxed)) return false;
  block* const b = begin(*p, own_number, news::block_given, bytes.size());
  b->head.from.h.source = s.self;
  b->head.from.h.destination = p->id;
  b->head.from.pass = p->pass_out;
  b->head.number = number;
  ucp_request_param_t how{};
  how.op_attr_mask =
      UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  how.flags = UCP_AM_SEND_FLAG_RNDV;
  how.cb.send = &ended;
  how.user_data = b;
  use_registration(*b, bytes, how);
  const ucs_status_ptr_t request = ucp.ucp_am_send_nbx(
      p->endpoint, is_block, &b->head, sizeof b->head, bytes.data(), bytes.size(), &how);
  p->bytes_out += sizeof b->head + bytes.size();
  if (!UCS_PTR_IS_PTR(request)) {
    end(b, UCS_PTR_STATUS(request));
    close_lost();
    wake(receiver_bell);
  } else if (!sender_attends) {
    (void)sender_bell.ring();  // it goes on when somebody calls UCX again
  }
  return true;
}

ucs_status_t ucx_transport::state::block_comes(const void* head, std::size_t head_bytes, void* data,
                                               std::size_t bytes, std::uint64_t attributes) {
  // As in arrived(): anybody may have sent this, and UCS_OK lets go of it.
  block_head h;
  if (head_bytes != sizeof h) return UCS_OK;
  std::memcpy(&h, head, sizeof h);
  peer* const source = peers.find(h.from.h.source);
  if (source == nullptr || h.from.pass != source->pass_in) return UCS_OK;
  peer& p = *source;
  const auto found = p.expected.find(h.number);
  // It may have been withdrawn meanwhile.
  if (p.lost.load(std::memory_order_relaxed) || found == p.expected.end()) return UCS_OK;
  const std::span<std::byte> into = found->second;
  if (h.from.h.destination != s.self || bytes != into.size()) {
    lose(p, "sent a malformed block");
    return UCS_OK;
  }
  p.expected.erase(found);
  block* const b = begin(p, h.number, news::block_arrived, bytes);
  if ((attributes & UCP_AM_RECV_ATTR_FLAG_RNDV) == 0) {  // UCX has its reasons
    std::memcpy(into.data(), data, bytes);
    end(b, UCS_OK);
    return UCS_OK;
  }
  ucp_request_param_t how{};
  how.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  how.cb.recv_am = [](void* request, ucs_status_t status, std::size_t, void* user) {
    ended(request, status, user);
  };
  how.user_data = b;
  use_registration(*b, into, how);
  const ucs_status_ptr_t request =
      ucp.ucp_am_recv_data_nbx(w.handle(), data, into.data(), into.size(), &how);
  if (UCS_PTR_IS_PTR(request)) return UCS_INPROGRESS;
  end(b, UCS_PTR_STATUS(request));
  return UCS_OK;
}

// It is being lost.
void ucx_transport::state::give_up_blocks(peer& p) {
  for (const auto& [number, into] : p.expected)
    filling.end(news::block_arrived, p.id, number, false, into.size());
  p.expected.clear();
  lost_blocks += p.blocks;
  somebody_to_close |= p.blocks != 0 && !p.is_broken;
}

// Whoever waits for the end of a block gets its memory back when UCX and its devices have let go of
// it. Of a peer that does not answer any more they do when the connection is given up.
void ucx_transport::state::close_lost() {
  if (!std::exchange(somebody_to_close, false)) return;
  for (const auto& p : peers.all()) {
    if (p->blocks == 0 || !p->lost.load(std::memory_order_relaxed) || p->is_broken ||
        p->endpoint == nullptr) {
      continue;
    }
    ucp_request_param_t how{};
    how.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    how.flags = UCP_EP_CLOSE_FLAG_FORCE;
    const ucs_status_ptr_t request = ucp.ucp_ep_close_nbx(p->endpoint, &how);
    p->endpoint = nullptr;
    if (UCS_PTR_IS_PTR(request)) ucp.ucp_request_free(request);  // at its end
  }
}

}  // namespace strata::net::ucx
