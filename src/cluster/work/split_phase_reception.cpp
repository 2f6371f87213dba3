// SPDX-License-Identifier: Apache-2.0
// Split-phase operations that come from other nodes.
#include <algorithm>
#include <cstring>
#include <functional>
#include <new>
#include <string>
#include <utility>

#include "cluster/words/thrown.hpp"
#include "cluster/work/packed_token.hpp"
#include "cluster/work/split_phase.hpp"
#include "cluster/work/split_phase_words.hpp"
#include "fibers/mailbox_access.hpp"
#include "fibers/slot_access.hpp"

namespace strata::cluster {

using detail::global_address;

void split_phase::check_home(reader token) const {
  // Its result goes there, unasked. A call that has begun to travel goes no further, so none comes
  // home.
  if (const auto home = home_of_packed(token)) {
    if (home->node() == mail_.self()) throw malformed("a call of the node that it has come to");
    check_is_known(home->node());
  }
}

detail::task* split_phase::unpack(detail::worker& w, reader& in) {
  const reader token = in;
  check_home(token);
  try {
    return unpack_token(w, in);
  } catch (const std::bad_alloc&) {
    in = skip_token(token);
    cannot_begin(token);
    return nullptr;
  }
}

void split_phase::cannot_begin(reader token) {
  const std::exception_ptr error = away_.keep(std::current_exception());
  const auto home = home_of_packed(token);
  if (!home) return here_.fail(error);
  // Nor may there be for saying so, at first.
  retry_without_memory([&] { post_result(*home, error, {}); });
}

bool split_phase::on_message(node_id from, kind k, reader r) {
  switch (k) {
    case kind::signal: {
      const auto slot = global_address::from_bits(r.take<std::uint64_t>());
      r.end();
      deliver_signal(slot, from);
      break;
    }
    case kind::increment: {
      const auto slot = global_address::from_bits(r.take<std::uint64_t>());
      const auto more = r.take<std::uint64_t>();
      r.end();
      if (slot.node() != mail_.self()) throw malformed("an increment for another node");
      if (slot.address() == nullptr || more > UINT32_MAX)
        throw malformed("an increment that nobody can have made");
      detail::slot_access::increment(slot.address(), static_cast<std::uint32_t>(more));
      break;
    }
    case kind::put:
      on_put(r, false, from);
      break;
    case kind::got:
      on_put(r, true, from);
      break;
    case kind::get:
      on_get(r, from);
      break;
    case kind::invoke:
      on_invoke(r);
      break;
    case kind::drop_in:
      on_drop_in(r, from);
      break;
    case kind::returned:
      on_returned(r);
      break;
    default:
      return false;
  }
  // After what it brought is there for is_idle() to see.
  counts_.received.fetch_add(1, std::memory_order_seq_cst);
  return true;
}

void split_phase::deliver_signal(global_address slot, node_id from) {
  if (slot.address() == nullptr) return;
  if (slot.node() != mail_.self()) {
    check_is_known(slot.node());
    post(slot.node(), kind::signal, bytes_of(slot.bits()));
    return mail_.posted_for(from, slot.node());
  }
  if (detail::task* const enabled = detail::slot_access::signal(slot.address()))
    here_.run_soon(enabled);
}

void split_phase::on_put(reader& r, bool answers, node_id from) {
  const auto head = r.take<put_head>();
  const auto data = r.take_rest();
  const auto to = global_address::from_bits(head.to);
  if (to.node() != mail_.self()) throw malformed("data for another node");
  if (!data.empty()) {
    if (to.address() == nullptr) throw malformed("data for no address");
    std::memcpy(to.address(), data.data(), data.size());
  }
  if (answers) {
    // Before its slot, which may refuse the signal: the program's mistake, and it has come.
    requests& q = requests_to(from);
    const std::lock_guard lock(q.mutex);
    q.in_flight -= std::min(q.in_flight, data.size() + answer_head_bytes);
    ask_for_waiting(from, q);
  }
  deliver_signal(global_address::from_bits(head.slot), from);
}

void split_phase::on_get(reader& r, node_id from) {
  const auto w = r.take<wanted>();
  r.end();
  const auto source = global_address::from_bits(w.from);
  if (source.node() != mail_.self()) throw malformed("a request for data of another node");
  if (w.bytes > at_once_max) throw malformed("a request for more than may be asked for at once");
  if (w.bytes != 0 && source.address() == nullptr)
    throw malformed("a request for data of no address");
  if (global_address::from_bits(w.into).node() != from)
    throw malformed("a request for data that another node is to get");
  answer(from, w);
}

void split_phase::on_invoke(reader& r) {
  check_home(r);
  detail::task* token = nullptr;
  try {
    token = unpack_whole(here_.network_worker(), r);
  } catch (const std::bad_alloc&) {
    return cannot_begin(r);
  }
  here_.run_soon(token);
}

void split_phase::on_drop_in(reader& r, node_id from) {
  const auto head = r.take<drop_in_head>();
  const auto data = r.take_rest();
  const auto box = global_address::from_bits(head.box);
  if (box.node() != mail_.self()) throw malformed("an item for a mailbox of another node");
  if (box.address() == nullptr) throw malformed("an item for no mailbox");
  if (head.offset == 0 && data.size() == head.bytes)
    return put_into_mailbox(box.address(), data, from);
  // Before it can be refused: of its other pieces nobody would know what they belong to.
  large_item& large = retry_without_memory([&] { return std::ref(large_item_of(from)); });
  if (head.offset == 0) {
    large.arriving.clear();
    large.is_refused = false;
  }
  if (large.is_refused) return;
  std::vector<std::byte>& whole = large.arriving;
  if (head.offset != whole.size() || head.offset > head.bytes ||
      data.size() > head.bytes - head.offset) {
    throw malformed("pieces of an item do not fit together");
  }
  try {
    whole.insert(whole.end(), data.begin(), data.end());
  } catch (const std::bad_alloc&) {
    // Its other pieces come all the same, from who knows nothing of that.
    large.is_refused = true;
    whole = std::vector<std::byte>();
    throw;
  }
  if (whole.size() == head.bytes) put_into_mailbox(box.address(), std::exchange(whole, {}), from);
}

void split_phase::put_into_mailbox(void* box, std::span<const std::byte> item, node_id from) {
  const auto slot = detail::mailbox_access::take_in(box, item.data(), item.size()).where();
  // Of this node's program, and not of the one that the item comes from.
  if (slot.address() != nullptr && !is_known(slot.node()))
    throw misuse_error("a mailbox signals a slot of node " + std::to_string(slot.node()) +
                       ", which there is not");
  deliver_signal(slot, from);
}

void split_phase::on_returned(reader& r) {
  const auto home = global_address::from_bits(r.take<std::uint64_t>());
  const bool threw = r.take<std::uint64_t>() != 0;
  if (home.node() != mail_.self()) throw malformed("the result of a call of another node");
  auto* const t = static_cast<detail::task*>(home.address());
  std::exception_ptr error;
  if (threw) error = away_.keep(std::make_exception_ptr(unpack_thrown(r, mail_.nodes())));
  away_.returns(t, error, r);
}

}  // namespace strata::cluster
