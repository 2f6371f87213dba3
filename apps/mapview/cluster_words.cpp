// SPDX-License-Identifier: Apache-2.0
#include "apps/mapview/cluster_words.hpp"

#include <cstring>
#include <strata/error.hpp>

namespace mapview {

std::vector<std::byte> packed(const fragment& f) {
  const fragment_head head{f.tile, f.pixels, f.missing ? found::missing : found::whole};
  std::vector<std::byte> bytes(sizeof(head) + f.shown.rgb.size());
  std::memcpy(bytes.data(), &head, sizeof(head));
  if (!f.shown.rgb.empty())
    std::memcpy(bytes.data() + sizeof(head), f.shown.rgb.data(), f.shown.rgb.size());
  return bytes;
}

fragment unpacked(const strata::message& m, const fragment_head& head) {
  fragment f{head.tile, head.pixels, head.how == found::missing, {}};
  f.shown = picture(head.pixels.width, head.pixels.height);
  if (m.content.size() != sizeof(head) + f.shown.rgb.size())
    throw strata::error("a fragment of another size");
  if (!f.shown.rgb.empty())
    std::memcpy(f.shown.rgb.data(), m.content.data() + sizeof(head), f.shown.rgb.size());
  return f;
}

}  // namespace mapview
