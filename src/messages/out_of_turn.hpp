// SPDX-License-Identifier: Apache-2.0
// What somebody asks for leaves before its turn: see seeking.cpp. What has to be looked at is what
// goes, however much waits.
#pragma once
#include <span>

#include "cluster/words/retry_without_memory.hpp"
#include "messages/matching.hpp"
#include "messages/wanted_patterns.hpp"

namespace strata::messages {

// For each pattern that is asked for the oldest message that fits it, and before it all that its
// source has sent before; but the runtime's own messages, which nobody takes for others, are no
// part of a source's order, and go alone. Each goes to send(entry), which may end it. `wanted` has
// what is asked for; what is left in it afterwards means nothing. False: nothing of it waits.
template <class Entry, class Send>
bool take_out_of_turn(waiting_messages<Entry>& waiting, std::span<const pattern> asked,
                      wanted_patterns& wanted, Send&& send) {
  const auto oldest = [&](const pattern& p) {
    return cluster::retry_without_memory([&] { return waiting.find(p); });
  };
  bool found = false;
  for (const pattern& p : asked) {
    if (!wanted.has(p)) continue;  // something that has gone for another one fits it
    Entry* const last = oldest(p);
    if (last == nullptr) continue;
    found = true;
    const pattern its = last->as_sent();
    for (bool is_last = false; !is_last;) {
      Entry* const next = its.is_internal() ? last : oldest({its.source, any_tag});
      is_last = next == last;
      (void)wanted.take(next->as_sent());
      waiting.remove(*next);
      send(*next);
    }
  }
  return found;
}

}  // namespace strata::messages
