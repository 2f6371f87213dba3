// SPDX-License-Identifier: Apache-2.0
// strata/group.hpp for the program: each operation is one of this member.
#include "strata/group.hpp"

#include <memory>
#include <utility>
#include <vector>

#include "messages/groups/collectives.hpp"
#include "messages/groups/member.hpp"

namespace strata {

using messages::operation;

group::group(endpoint& mine, std::vector<endpoint_id> members)
    : me_(std::make_unique<messages::member>(mine, std::move(members))) {}
group::group(std::unique_ptr<messages::member> me) noexcept : me_(std::move(me)) {}
group::group(group&&) noexcept = default;
group& group::operator=(group&&) noexcept = default;
group::~group() = default;

unsigned group::rank() const noexcept { return me_->rank(); }
unsigned group::size() const noexcept { return me_->size(); }
std::span<const endpoint_id> group::members() const noexcept { return me_->members(); }
const group_traffic& group::traffic() const noexcept { return me_->traffic(); }
void group::leave(std::string_view why) noexcept { me_->leave(why); }

void group::barrier() {
  me_->perform(operation::barrier, 0, [&] { me_->meet(); });
}

void group::broadcast_bytes(std::span<std::byte> values, unsigned root) {
  me_->perform(operation::broadcast, root, [&] { messages::broadcast(*me_, values, root); });
}

void group::reduce_bytes(std::span<const std::byte> values, std::span<std::byte> result,
                         unsigned root, const detail::combination& op) {
  me_->perform(operation::reduce, root, [&] { messages::reduce(*me_, values, result, root, op); });
}

void group::all_reduce_bytes(std::span<std::byte> values, const detail::combination& op) {
  me_->perform(operation::all_reduce, 0, [&] { messages::all_reduce(*me_, values, op); });
}

void group::reduce_scatter_bytes(std::span<const std::byte> all, std::span<std::byte> values,
                                 const detail::combination& op) {
  me_->perform(operation::reduce_scatter, 0,
               [&] { messages::reduce_scatter(*me_, all, values, op); });
}

void group::scan_bytes(std::span<std::byte> values, const detail::combination& op) {
  me_->perform(operation::scan, 0, [&] { messages::scan(*me_, values, op); });
}

void group::exclusive_scan_bytes(std::span<const std::byte> values, std::span<std::byte> result,
                                 const detail::combination& op) {
  me_->perform(operation::scan, 0, [&] { messages::exclusive_scan(*me_, values, result, op); });
}

void group::gather_bytes(std::span<const std::byte> values, std::span<std::byte> all,
                         unsigned root) {
  me_->perform(operation::gather, root, [&] { messages::gather(*me_, values, all, root); });
}

namespace {
// Who has sent something else has another type.
void require_whole(messages::member& me, const std::vector<std::byte>& bytes,
                   std::size_t element_bytes) {
  me.require(bytes.size() % element_bytes == 0,
             "members give values of different types: a size that is no multiple of a value's");
}
void require_whole(messages::member& me, const std::vector<std::vector<std::byte>>& all,
                   std::size_t element_bytes) {
  for (const std::vector<std::byte>& one : all) require_whole(me, one, element_bytes);
}
}  // namespace

std::vector<std::vector<std::byte>> group::gather_any(std::span<const std::byte> bytes,
                                                      unsigned root) {
  return gather_any_bytes(bytes, root, 1);
}

std::vector<std::vector<std::byte>> group::gather_any_bytes(std::span<const std::byte> values,
                                                            unsigned root,
                                                            std::size_t element_bytes) {
  std::vector<std::vector<std::byte>> all;
  me_->perform(operation::gather_any, root, [&] {
    all = messages::gather_any(*me_, values, root);
    require_whole(*me_, all, element_bytes);
  });
  return all;
}

std::vector<std::vector<std::byte>> group::all_gather_any_bytes(std::span<const std::byte> values,
                                                                std::size_t element_bytes) {
  std::vector<std::vector<std::byte>> all;
  me_->perform(operation::all_gather_any, 0, [&] {
    all = messages::all_gather_any(*me_, values);
    require_whole(*me_, all, element_bytes);
  });
  return all;
}

std::vector<std::byte> group::scatter_any_bytes(
    const std::vector<std::span<const std::byte>>& parts, unsigned root,
    std::size_t element_bytes) {
  std::vector<std::byte> mine;
  me_->perform(operation::scatter_any, root, [&] {
    mine = messages::scatter_any(*me_, parts, root);
    require_whole(*me_, mine, element_bytes);
  });
  return mine;
}

std::vector<std::vector<std::byte>> group::all_to_all_any_bytes(
    const std::vector<std::span<const std::byte>>& parts, std::size_t element_bytes) {
  std::vector<std::vector<std::byte>> all;
  me_->perform(operation::all_to_all_any, 0, [&] {
    all = messages::all_to_all_any(*me_, parts);
    require_whole(*me_, all, element_bytes);
  });
  return all;
}

void group::all_gather_bytes(std::span<const std::byte> values, std::span<std::byte> all) {
  me_->perform(operation::all_gather, 0, [&] { messages::all_gather(*me_, values, all); });
}

void group::scatter_bytes(std::span<const std::byte> all, std::span<std::byte> values,
                          unsigned root) {
  me_->perform(operation::scatter, root, [&] { messages::scatter(*me_, all, values, root); });
}

void group::all_to_all_bytes(std::span<const std::byte> out, std::span<std::byte> in) {
  me_->perform(operation::all_to_all, 0, [&] { messages::all_to_all(*me_, out, in); });
}

std::optional<group> group::split(std::optional<unsigned> color, int key) {
  std::unique_ptr<messages::member> part = me_->split(color, key);
  if (part == nullptr) return std::nullopt;
  return group(std::move(part));
}

}  // namespace strata
