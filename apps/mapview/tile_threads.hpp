// SPDX-License-Identifier: Apache-2.0
// A thread for each tile, a few hundred at a time. Where there is no room for one more, its tile is
// loaded by the caller: the picture comes later, but it comes.
#pragma once
#include <algorithm>
#include <cstdint>
#include <new>
#include <strata/thread.hpp>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

namespace mapview {

// Enough for any number of workers; and whoever gives up waits for no more than these.
inline constexpr std::uint32_t tiles_at_once = 256;

// Calls load(i) for each i below `tiles`, in threads, and take(what that returned) in the calling
// one, in the order of i. No more than tiles_at_once have begun and not been taken. load must not
// throw; what take throws is rethrown when those that have begun are done.
template <class Load, class Take>
void load_ahead(std::uint32_t tiles, const Load& load, const Take& take) {
  static_assert(noexcept(load(0U)));
  struct place {
    std::invoke_result_t<const Load&, std::uint32_t> loaded;
    strata::thread loader;

    // Its thread uses it.
    ~place() {
      if (loader.joinable()) loader.join();
    }
  };
  std::vector<place> places(std::min(tiles, tiles_at_once));
  const auto begin = [&](std::uint32_t i) {
    place& p = places[i % tiles_at_once];
    const auto fill = [&load, &p, i]() noexcept { p.loaded = load(i); };
    try {
      p.loader = strata::thread(fill);
      return;
    } catch (const std::system_error&) {  // no room for a stack
    } catch (const std::bad_alloc&) {
    }
    fill();
  };
  std::uint32_t begun = 0;
  for (std::uint32_t i = 0; i < tiles; ++i) {
    while (begun < tiles && begun - i < tiles_at_once) begin(begun++);
    place& p = places[i % tiles_at_once];
    if (p.loader.joinable()) p.loader.join();
    take(std::exchange(p.loaded, {}));
  }
}

}  // namespace mapview
