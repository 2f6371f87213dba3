// SPDX-License-Identifier: Apache-2.0
// A program that runs on several nodes; its last argument says what it does. Prints "ok" on node 0
// when all was as it should be, else what was not.
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string_view>

#include "program_calls.hpp"
#include "program_conversations.hpp"
#include "program_cores.hpp"
#include "program_exceptions.hpp"
#include "program_losses.hpp"
#include "program_mailboxes.hpp"
#include "program_misuse.hpp"
#include "program_stalls.hpp"
#include "program_threads.hpp"
#include "program_tokens.hpp"
#include "program_transfers.hpp"
#include "program_unconnected.hpp"
#include "strata/runtime.hpp"

namespace {

using namespace strata;

struct action {
  std::string_view name;
  void (*run)(runtime&);
};
constexpr action actions[] = {
    {"nothing", [](runtime&) {}},
    {"without-a-thread", [](runtime&) {}},
    {"any-core", &any_core},
    {"one-core", &one_core},
    {"tokens", &tokens},
    {"spread", &spread},
    {"lone-tokens", &lone_tokens},
    {"large-tokens", &large_tokens},
    {"left-behind", &left_behind},
    {"blocks", &blocks},
    {"flood", &flood},
    {"keep-busy", &keep_busy},
    {"calls", &calls},
    {"scopes", &scopes},
    {"code-elsewhere", &code_elsewhere},
    {"exceptions", &exceptions},
    {"exceptions-by-way", &exceptions_by_way},
    {"fiber-exceptions", &fiber_exceptions},
    {"fiber-exceptions-heard-elsewhere", &fiber_exceptions_heard_elsewhere},
    {"fiber-exceptions-beside-waits", &fiber_exceptions_beside_waits},
    {"mailboxes", &mailboxes},
    {"converse-nearby", &converse_nearby},
    {"misuse", &misuse},
    {"signal-too-many", &signal_too_many},
    {"stall", &stall},
    {"ask-and-stall", &ask_and_stall},
    {"stall-in-receive", &stall_in_receive},
    {"stall-in-send", &stall_in_send},
    {"stall-in-semaphore", &stall_in_semaphore},
    {"stall-for-a-name", &stall_for_a_name},
    {"stall-elsewhere", &stall_elsewhere},
    {"flood-stopped", &flood_stopped},
    {"pause-0", &pause_0},
    {"pause-1", &pause_1},
    {"stop-0", &stop_0},
    {"stop-0-while-1-is-deaf", &stop_0_while_1_is_deaf},
    {"kill", &lose_killed},
    {"stop", &lose_stopped},
    {"kill-thief", &kill_thief},
    {"kill-caller", &kill_caller},
    {"kill-receiver", &kill_receiver},
    {"kill-victim", &kill_victim},
    {"kill-gateway", &kill_gateway},
    {"kill-under-wait-idle", &kill_under_wait_idle},
    {"leave", &lose_leaver},
    {"talk-across", &talk_across},
};

}  // namespace

int main(int argc, char** argv) try {
  remember_cpus();
  const std::string_view what = argc > 1 ? argv[argc - 1] : "";
  if (what == "dies-before-it-connects") die_before_it_connects();
  if (what == "without-a-thread" && argc > 3) refuse_thread(argv[argc - 3], argv[argc - 2]);
  if (what == "leave-mistakes-to-the-runtime") {
    const runtime rt(argc, argv);
    return 0;
  }
  runtime rt(options::parse(argc, argv));
  for (const action& a : actions) {
    if (what != a.name) continue;
    a.run(rt);
    std::printf("ok\n");
    return 0;
  }
  throw std::logic_error("what?");
} catch (const std::exception& e) {
  std::printf("not ok: %s\n", e.what());
  return 1;
}
