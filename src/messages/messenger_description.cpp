// SPDX-License-Identifier: Apache-2.0
// What people are told of a node's messages: by which paths they went, and who waits for what.
#include <mutex>
#include <string>
#include <variant>

#include "messages/messenger.hpp"

namespace strata::messages {

using std::memory_order_relaxed;

message_statistics messenger::counted() {
  message_statistics m{.sent_whole = lanes_.eager(),
                       .helped = paths_.helped.load(memory_order_relaxed),
                       .read = paths_.read.load(memory_order_relaxed),
                       .moved = paths_.moved.load(memory_order_relaxed),
                       .pulled = paths_.pulled.load(memory_order_relaxed),
                       .bytes_copied = paths_.bytes_copied.load(memory_order_relaxed)};
  ports_.for_each([&](port& p) {
    const std::lock_guard lock(p.lock);
    const port::counts& c = p.counted;
    m.handed_over += c.handed_over;
    m.copied_twice += c.copied_twice;
    m.copied_once += c.from_here - c.handed_over - c.copied_twice;
    m.bytes_copied += c.bytes_copied;
  });
  return m;
}

std::string messenger::describe_waits() {
  constexpr std::size_t shown_max = 20, patterns_max = 5;
  std::size_t shown = 0;
  std::string text;
  // Messages and their bytes, of senders who wait until they are received, or may be sent.
  const auto senders = [](std::size_t messages, std::size_t bytes) {
    return "  " + std::to_string(messages) +
           (messages == 1 ? " message of " : " messages of together ") + std::to_string(bytes) +
           (messages == 1 ? " bytes waits" : " bytes wait");
  };
  ports_.for_each([&](port& p) {
    const std::lock_guard lock(p.lock);
    std::size_t offers = 0, bytes = 0;
    p.messages.for_each([&](const arrival& a) {
      if (!std::holds_alternative<request*>(a.body) &&
          !std::holds_alternative<arrival::offered>(a.body))
        return;
      ++offers;
      bytes += a.info.bytes;
    });
    if ((p.receives.empty() && offers == 0) || ++shown > shown_max) return;
    if (offers != 0)
      text += senders(offers, bytes) + " at endpoint " + text_of(p.id) + " for a receive\n";
    if (p.receives.empty()) return;
    std::size_t receives = 0;
    std::string from;
    p.receives.for_each([&](const request& r) {
      if (receives < patterns_max) from += (receives == 0 ? "" : ", ") + text_of(r.wanted);
      ++receives;
    });
    text += "  endpoint " + text_of(p.id) + ": " + std::to_string(receives) +
            " receives wait for a message (" + from +
            (receives > patterns_max ? ", ...), " : "), ") + std::to_string(p.messages.size()) +
            " messages for a receive\n";
  });
  if (shown > shown_max) text += "  and " + std::to_string(shown - shown_max) + " more endpoints\n";
  lanes_.for_each([&](lane& l) {
    std::size_t waiting = 0, bytes = 0;
    l.waiting.for_each([&](const request& r) {
      ++waiting;
      bytes += r.info.bytes;
    });
    if (waiting != 0)
      text += senders(waiting, bytes) +
              (l.is_held ? " for the network to node " + std::to_string(l.target.node())
                         : " for room at endpoint " + text_of(l.target)) +
              "\n";
  });
  return text + names.describe_waits();
}

}  // namespace strata::messages
