// SPDX-License-Identifier: Apache-2.0
#include "cluster/work/packed_token.hpp"

#include <cstdint>
#include <cstring>

namespace strata::cluster {
namespace {

struct packed_token {
  const detail::wire_type* type;
  std::span<const std::byte> arguments, behind;
};

packed_token take_head(reader& in) {
  const detail::wire_type* const type =
      detail::travelling_code::find(in.take<detail::code_identity>());
  if (type == nullptr) throw malformed("a token of code that this program does not have");
  return {type, in.take_bytes(type->argument_bytes), {}};
}

// One of several, with what its type says is behind its head.
packed_token take_token(reader& in) {
  packed_token p = take_head(in);
  if (p.type->bytes_behind != nullptr)
    p.behind = in.take_bytes(p.type->bytes_behind(p.arguments.data()));
  return p;
}

detail::task* made_of(detail::worker& w, const packed_token& p) {
  detail::task* const t = p.type->unpack(w, p.arguments.data());
  if (!p.behind.empty()) [[unlikely]]
    p.type->take_arguments(*t, p.behind);
  return t;
}

std::span<const std::byte> behind(const detail::task& token) {
  const detail::wire_type& type = *token.type->wire;
  return type.behind != nullptr ? type.behind(token) : std::span<const std::byte>();
}

}  // namespace

std::size_t packed_bytes(const detail::task& token) noexcept {
  return sizeof(detail::code_identity) + token.type->wire->argument_bytes;
}

void pack_token(std::byte* out, const detail::task& token, node_id here) {
  const detail::wire_type& type = *token.type->wire;
  const detail::code_identity identity = type.code->identity();
  std::memcpy(out, &identity, sizeof(identity));
  type.pack(token, here, out + sizeof(identity));
}

void pack_token(writer& out, const detail::task& token, node_id here) {
  pack_token(out.grow(packed_bytes(token)), token, here);
  out.add_bytes(behind(token));
}

detail::task* unpack_token(detail::worker& w, reader& in) { return made_of(w, take_token(in)); }

detail::task* unpack_whole(detail::worker& w, reader in) {
  packed_token p = take_head(in);
  p.behind = in.take_rest();
  if (!p.behind.empty() && p.type->take_arguments == nullptr) [[unlikely]]
    throw malformed("a token with something behind it");
  return made_of(w, p);
}

reader skip_token(reader in) {
  (void)take_token(in);
  return in;
}

std::optional<detail::global_address> home_of_packed(reader in) {
  const packed_token p = take_head(in);
  if (p.type->accept == nullptr) return std::nullopt;
  return detail::global_address::from_bits(reader(p.arguments).take<std::uint64_t>());
}

void give_up_packed(detail::worker& w, reader in) {
  const packed_token p = take_head(in);
  if (p.type->give_up != nullptr) p.type->give_up(w, p.arguments.data());
}

bool is_call_packed(std::span<const std::byte> token) {
  const detail::wire_type* const type =
      detail::travelling_code::find(reader(token).take<detail::code_identity>());
  return type != nullptr && type->accept != nullptr;
}

}  // namespace strata::cluster
