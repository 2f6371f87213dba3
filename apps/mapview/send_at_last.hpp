// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <new>
#include <strata/message.hpp>
#include <strata/thread.hpp>

namespace mapview {

// A word that somebody waits for: sent however little memory there is now, when others have given
// some back. Throws what else send_value() throws.
template <class T>
void send_at_last(strata::endpoint& from, strata::endpoint_id to, const T& word) {
  const auto is_sent = [&] {
    try {
      from.send_value(to, 0, word);
      return true;
    } catch (const std::bad_alloc&) {
      return false;
    }
  };
  while (!is_sent()) strata::this_thread::yield();
}

}  // namespace mapview
