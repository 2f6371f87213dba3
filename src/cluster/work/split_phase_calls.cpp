// SPDX-License-Identifier: Apache-2.0
// Tokens and calls that go to other nodes, and how calls end: with a result, or a loss.
#include <exception>

#include "cluster/words/thrown.hpp"
#include "cluster/work/packed_token.hpp"
#include "cluster/work/split_phase.hpp"
#include "cluster/work/split_phase_words.hpp"

namespace strata::cluster {

using detail::global_address;

void split_phase::invoke(detail::worker& w, node_id node, detail::task* token) {
  writer out;
  try {
    check_is_there(node);
    if (token->type->wire->prepare != nullptr) token->type->wire->prepare(*token, w);
    pack_token(out, *token, mail_.self());
  } catch (...) {
    token->type->abandon(*token, w);
    throw;
  }
  token->type->abandon(*token, w);
  // If the node has left meanwhile it is given up, and what waits here for it goes.
  mail_.wait_for_room(node);
  try {
    post(node, kind::invoke, out.bytes());
  } catch (...) {
    give_up_packed(w, reader(out.bytes()));
    throw;
  }
}

void split_phase::call(detail::worker& w, node_id node, detail::task& c,
                       std::span<const std::byte> more) {
  check_is_there(node);
  writer out;
  pack_token(out, c, mail_.self());
  // Before the result can be back.
  goes_away(c, node, w, calls_away::trip::to_named);
  // If the node leaves meanwhile on_left() says so to c, and nobody else does.
  mail_.wait_for_room(node);
  try {
    post(node, kind::invoke, out.bytes(), more);
  } catch (...) {
    // Unless it has been lost meanwhile, and c has been told so.
    if (away_.comes_back(c)) throw;
  }
}

void split_phase::give_back(global_address home, const std::exception_ptr& error, const void* value,
                            std::size_t bytes) {
  check_is_there(home.node());
  mail_.wait_for_room(home.node());
  // Who waits for it is told by nobody else.
  retry_without_memory([&] { post_result(home, error, bytes_at(value, bytes)); });
}

void split_phase::post_result(global_address home, const std::exception_ptr& error,
                              std::span<const std::byte> value) {
  const std::uint64_t head[] = {home.bits(), error != nullptr ? 1U : 0U};
  if (error == nullptr)
    return post(home.node(), kind::returned, std::as_bytes(std::span(head)), value);
  writer thrown;
  pack_thrown(thrown, error, mail_.self());
  post(home.node(), kind::returned, std::as_bytes(std::span(head)), thrown.bytes());
}

bool split_phase::prepare(detail::task& t, detail::worker& w) {
  const detail::wire_type& type = *t.type->wire;
  if (type.prepare == nullptr) [[likely]]
    return true;
  try {
    type.prepare(t, w);
    return true;
  } catch (...) {
    const std::exception_ptr error = away_.keep(std::current_exception());
    if (type.accept != nullptr) {
      type.accept(t, error, nullptr);
    } else {
      t.type->abandon(t, w);
      here_.fail(error);
    }
    return false;
  }
}

void split_phase::goes_away(detail::task& t, node_id to, detail::worker& frames,
                            calls_away::trip how) {
  if (t.type->wire->accept == nullptr) return t.type->abandon(t, frames);
  away_.goes(t, to, how);
}

detail::task* split_phase::come_back(detail::worker& w, reader& in) {
  const auto home = home_of_packed(in);
  if (!home) return unpack_token(w, in);
  in = skip_token(in);
  auto* const t = static_cast<detail::task*>(home->address());
  return comes_back(*t) ? t : nullptr;
}

void split_phase::lose(const std::exception_ptr& error) {
  if (!is_lost_.load(std::memory_order_relaxed)) {
    loss_ = error;
    is_lost_.store(true, std::memory_order_release);
  }
  away_.lose(error);
}

}  // namespace strata::cluster
