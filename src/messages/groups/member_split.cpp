// SPDX-License-Identifier: Apache-2.0
// A group out of some members of another one. Each has its endpoint for the new group before it
// says where it belongs, so that once all have said so, all know all of them. Then all meet: nobody
// returns before all know whom to tell if they fail after that.
#include <algorithm>
#include <tuple>
#include <vector>

#include "messages/groups/collectives.hpp"
#include "messages/groups/member.hpp"

namespace strata::messages {

// What a member says of itself.
struct member::placing {
  endpoint_id here;  // in the new group
  std::uint32_t color = 0;
  std::int32_t key = 0;
  std::uint32_t rank = 0;
  std::uint32_t takes_part = 0;
};

member::member() : exceptions_(std::uncaught_exceptions()) { open(); }

std::unique_ptr<member> member::split(std::optional<unsigned> color, int key) {
  std::unique_ptr<member> part;
  perform(operation::split, 0, [&] {
    // All memory before all meet: what fails later must not leave others with one who is not there.
    std::vector<placing> all(size());
    placing mine{
        .here = {}, .color = color.value_or(0), .key = key, .rank = rank_, .takes_part = 0};
    if (color) {
      part.reset(new member);
      mine.here = part->own_->id();
      mine.takes_part = 1;
    }
    all_gather(*this, bytes_of(mine), std::as_writable_bytes(std::span(all)));
    std::erase_if(all, [&](const placing& p) {
      return mine.takes_part == 0 || p.takes_part == 0 || p.color != mine.color;
    });
    std::ranges::sort(all, {}, [](const placing& p) { return std::pair(p.key, p.rank); });
    if (part != nullptr) {
      const auto those = std::make_shared<roster>();
      those->members.reserve(all.size());  // as many as there are, and not as there were
      those->peers.reserve(all.size());
      for (const placing& p : all) {
        if (p.rank == rank_) part->rank_ = static_cast<unsigned>(those->members.size());
        those->members.push_back(members()[std::min(p.rank, size() - 1)]);
        those->peers.push_back(p.here);
      }
      part->all_ = those;
    }
    all = {};
    meet();
  });
  return part;
}

}  // namespace strata::messages
