// SPDX-License-Identifier: Apache-2.0
// How the nodes of a job talk: what a user can ask for by name, and what follows from it.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace strata {

// Travels as its number. With shm_ucx and shm_udp the nodes of one host share memory, as with
// `automatic`, and UCX or UDP joins those of different hosts; ucx and udp alone join all.
enum class transport_choice : std::uint8_t { automatic, shm, tcp, ucx, udp, shm_ucx, shm_udp };

[[nodiscard]] constexpr bool is_transport_choice(std::uint8_t number) noexcept {
  return number <= static_cast<std::uint8_t>(transport_choice::shm_udp);
}

// Whether nodes of one host share memory, where it can be had.
[[nodiscard]] constexpr bool uses_memory(transport_choice c) noexcept {
  return c != transport_choice::tcp && c != transport_choice::ucx && c != transport_choice::udp;
}

// What joins nodes that share no memory.
enum class network_kind : std::uint8_t { none, tcp, ucx, udp };
[[nodiscard]] constexpr network_kind network_of(transport_choice c) noexcept {
  switch (c) {
    case transport_choice::shm:
      return network_kind::none;
    case transport_choice::ucx:
    case transport_choice::shm_ucx:
      return network_kind::ucx;
    case transport_choice::udp:
    case transport_choice::shm_udp:
      return network_kind::udp;
    case transport_choice::automatic:
    case transport_choice::tcp:
      break;
  }
  return network_kind::tcp;
}

// Of networks that the user names one by one.
struct named_network_kind {
  std::string_view name;
  network_kind kind;
};
inline constexpr std::array named_network_kinds{named_network_kind{"tcp", network_kind::tcp},
                                                named_network_kind{"udp", network_kind::udp},
                                                named_network_kind{"ucx", network_kind::ucx}};

struct named_transport {
  std::string_view name;
  transport_choice choice;
};
inline constexpr std::array named_transports{
    named_transport{"auto", transport_choice::automatic},
    named_transport{"shm", transport_choice::shm},
    named_transport{"tcp", transport_choice::tcp},
    named_transport{"ucx", transport_choice::ucx},
    named_transport{"udp", transport_choice::udp},
    named_transport{"shm+tcp", transport_choice::automatic},
    named_transport{"shm+ucx", transport_choice::shm_ucx},
    named_transport{"shm+udp", transport_choice::shm_udp},
};

inline constexpr auto transport_names = [] {
  std::array<std::string_view, named_transports.size()> all{};
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = named_transports[i].name;
  return all;
}();

// None: nothing is called so.
[[nodiscard]] constexpr std::optional<transport_choice> transport_named(
    std::string_view name) noexcept {
  const auto found = std::find_if(named_transports.begin(), named_transports.end(),
                                  [&](const named_transport& t) { return t.name == name; });
  if (found == named_transports.end()) return std::nullopt;
  return found->choice;
}

}  // namespace strata
