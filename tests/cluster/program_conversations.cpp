// SPDX-License-Identifier: Apache-2.0
#include "program_conversations.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "strata/fiber.hpp"
#include "strata/message.hpp"
#include "strata/remote_thread.hpp"
#include "tests/common/require.hpp"

namespace {

using namespace strata;
using test::require;

constexpr message_tag introduction = 1, chatter = 2, nod = 3, enough = 4;
// So many messages are under way to the listener, who nods to each eighth.
constexpr int ahead = 32, nods_every = 8;

// On node 1: where the listener's stack is while it listens, and whether a question has been taken
// in there.
std::atomic<std::uintptr_t> listens_at{0};
std::atomic<bool> taken_in_by_listener{false};

// Part of a question: made by whoever takes that in, where it does so. That is the listener's stack
// only if the listener looks for it while it waits for the next message of its conversation; once
// it is suspended others look, on stacks of their own.
struct witness {
  witness() noexcept {
    // As much as a wait leaves for what a message makes happen.
    constexpr std::size_t room_for_handling = std::size_t{64} << 10;
    const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
    if (listens_at.load() - here < room_for_handling) taken_in_by_listener.store(true);
  }
};
struct asked : threaded {
  explicit asked(witness) {}
  void start() { terminate(); }
};

struct listener {
  endpoint_id ears;
  global_ptr<const int> number;
};
constexpr int known_number = 42;

// On node 1, whose worker does nothing else meanwhile: hears one message after the other, and is
// slower than who sends them, so that it finds the next one as soon as it looks.
void hear_out(endpoint_id talker) {
  endpoint here;
  here.send_value(talker, introduction,
                  listener{here.id(), global_ptr<const int>(node_id(), &known_number)});
  listens_at.store(reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)));
  for (int heard = 1; here.receive_value<bool>(talker, chatter); ++heard) {
    volatile int thought = 0;
    while (thought < 1000) thought = thought + 1;
    if (heard % nods_every == 0) here.send_value(talker, nod, taken_in_by_listener.load());
  }
  listens_at.store(0);
}

// On node 2, of node 1: one question after the other, each answered before the next.
void ask(endpoint_id talker, global_ptr<const int> number) {
  endpoint here;
  here.send_value(talker, introduction, here.id());
  bool over = false;
  transfer end = here.start_receive(std::span(&over, 1), talker, enough);
  bool all_right = true;
  while (!end.test()) {
    invoke<asked>(1, witness());
    int value = 0;
    completion come;
    get_sync(number, &value, come.sptr());
    come.wait();
    all_right &= value == known_number;
  }
  end.wait();
  require(all_right, "answers what it was asked");
}

}  // namespace

void converse_nearby(runtime& rt) {
  rt.run([] {
    endpoint mine;
    remote_thread near(on_node{1}, call<hear_out>(mine.id()));
    const auto other = mine.receive_value<listener>(any_endpoint_on(1), introduction);
    remote_thread far(on_node{2}, call<ask>(mine.id(), other.number));
    const auto asker = mine.receive_value<endpoint_id>(any_endpoint_on(2), introduction);
    for (int under_way = 0;; under_way -= nods_every) {
      for (; under_way < ahead; ++under_way) mine.send_value(other.ears, chatter, true);
      if (mine.receive_value<bool>(other.ears, nod)) break;
    }
    mine.send_value(other.ears, chatter, false);
    mine.send_value(asker, enough, true);
    near.join();
    far.join();
  });
}
