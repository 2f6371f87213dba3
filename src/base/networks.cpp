// SPDX-License-Identifier: Apache-2.0
#include "base/networks.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <utility>

#include "base/shortened.hpp"
#include "base/values.hpp"
#include "strata/error.hpp"

namespace strata {

std::optional<std::vector<std::uint8_t>> bits_of(const std::string& numeric) {
  std::vector<std::uint8_t> bits(16);
  if (::inet_pton(AF_INET, numeric.c_str(), bits.data()) == 1) {
    bits.resize(4);
    return bits;
  }
  if (::inet_pton(AF_INET6, numeric.c_str(), bits.data()) == 1) return bits;
  return std::nullopt;
}

network_prefix prefix_of(const std::string& range) {
  const auto slash = range.find('/');
  auto bits = bits_of(range.substr(0, slash));
  if (!bits || slash == std::string::npos)
    throw user_error(in_quotes(range) + " is no network such as 10.1.0.0/16 or ucx:10.1.0.0/16");
  try {
    const std::uint64_t count = parse_whole(range.substr(slash + 1), 1, 8 * bits->size());
    return {std::move(*bits), static_cast<unsigned>(count)};
  } catch (const user_error& problem) {
    throw user_error(range + ": " + problem.what());
  }
}

std::string range_of(const std::string& numeric, unsigned count) {
  auto bits = bits_of(numeric);
  if (!bits || count > 8 * bits->size())
    throw user_error(in_quotes(numeric) + " is no address of a network");
  for (unsigned bit = count; bit < 8 * bits->size(); ++bit)
    (*bits)[bit / 8] &= static_cast<std::uint8_t>(~(0x80U >> bit % 8));
  std::array<char, INET6_ADDRSTRLEN> text{};
  ::inet_ntop(bits->size() == 4 ? AF_INET : AF_INET6, bits->data(), text.data(), text.size());
  return text.data() + ("/" + std::to_string(count));
}

std::string range_of(const std::string& numeric) {
  const auto bits = bits_of(numeric);
  return range_of(numeric, bits ? static_cast<unsigned>(8 * bits->size()) : 0);
}

std::vector<named_network> networks_in(const std::string& list, network_kind usual) {
  std::vector<named_network> all;
  if (list == networks_to_find) return all;
  std::stringstream text(list);
  for (std::string one; std::getline(text, one, ',');) {
    if (one == networks_to_find)
      throw user_error("'auto' stands alone, for all networks that the nodes find");
    named_network n{one, usual == network_kind::none ? network_kind::tcp : usual, one};
    // An address of the newer kind has colons too, but none of these words before one.
    const auto colon = one.find(':');
    for (const named_network_kind& k : named_network_kinds) {
      if (colon == k.name.size() && one.starts_with(k.name))
        n = {one.substr(colon + 1), k.kind, one};
    }
    (void)prefix_of(n.range);
    all.push_back(std::move(n));
  }
  return all;
}

bool has_kind(const std::vector<named_network>& networks, network_kind kind) noexcept {
  return std::any_of(networks.begin(), networks.end(),
                     [kind](const named_network& n) { return n.kind == kind; });
}

}  // namespace strata
