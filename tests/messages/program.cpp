// SPDX-License-Identifier: Apache-2.0
// Messages between the nodes of a job; its last argument says what it does: with "unreadable-"
// before it, where the kernel lets nobody read another process. Prints "ok" on node 0 when all was
// as it should be, else what was not.
#include <sys/syscall.h>

#include <cstdio>
#include <exception>
#include <map>
#include <string_view>

#include "../common/denied_calls.hpp"
#include "../common/require.hpp"
#include "program_asleep.hpp"
#include "program_backwards.hpp"
#include "program_bests.hpp"
#include "program_by_node.hpp"
#include "program_calls.hpp"
#include "program_crowd.hpp"
#include "program_echoes.hpp"
#include "program_groups.hpp"
#include "program_huge.hpp"
#include "program_in_place.hpp"
#include "program_kept.hpp"
#include "program_large.hpp"
#include "program_losses.hpp"
#include "program_names.hpp"
#include "program_objects.hpp"
#include "program_paths.hpp"
#include "program_published.hpp"
#include "program_registered.hpp"
#include "program_room.hpp"
#include "program_stops.hpp"
#include "program_taken_in.hpp"
#include "strata/runtime.hpp"

using namespace strata;

int main(int argc, char** argv) {
  static const std::map<std::string_view, void (*)(runtime&)> actions{
      {"by-node", by_node},
      {"calls", calls},
      {"cancelled-send", cancelled_send},
      {"crowded-network", crowded_network},
      {"copied-by-both", copied_by_both},
      {"crowd", crowd},
      {"eager-limit", eager_limit},
      {"echoes", echoes},
      {"ended-targets", ended_targets},
      {"given-up", given_up},
      {"goes-around", goes_around},
      {"group-errors", group_errors},
      {"group-example", group_example},
      {"group-loses-a-node", group_loses_a_node},
      {"groups", group_operations},
      {"guests-come-and-go", guests_come_and_go},
      {"huge", huge},
      {"in-place", in_place},
      {"kept-apart", kept_apart},
      {"kept-memory", kept_memory},
      {"killed-while-it-helps", killed_while_it_helps},
      {"large", large},
      {"large-gives-way", large_gives_way},
      {"lost", lost},
      {"lost-in-the-middle", lost_in_the_middle},
      {"lost-with-forks", lost_with_forks},
      {"lost-with-objects", lost_with_objects},
      {"lost-within", lost_within},
      {"lost-with-locks", lost_with_locks},
      {"named-objects-end", named_objects_end},
      {"named-tasks", named_tasks},
      {"names", names},
      {"names-at-once", names_at_once},
      {"names-found-often", names_found_often},
      {"names-found-once", names_found_once},
      {"nearest", find_nearest},
      {"nothing-but-looks", nothing_but_looks},
      {"object-calls", object_calls},
      {"object-forks", object_forks},
      {"object-tokens", object_tokens},
      {"others-go-on", others_go_on},
      {"outlives-its-runtime", outlives_its_runtime},
      {"paths", paths},
      {"received-backwards", received_backwards},
      {"registered", registered},
      {"room-in-turn", room_in_turn},
      {"slow-receiver", slow_receiver},
      {"stops", stops},
      {"bests", bests},
      {"bests-at-work", bests_at_work},
      {"taken-in", taken_in},
      {"tokens-not-read", tokens_not_read},
      {"waits-with-a-deadline", waits_with_a_deadline},
      {"wakes-one", wakes_one}};
  try {
    std::string_view what = argv[argc - 1];
    constexpr std::string_view unreadable = "unreadable-";
    if (what.starts_with(unreadable)) {
      test::require(test::deny_calls({SYS_process_vm_readv, SYS_process_vm_writev}),
                    "a kernel that refuses calls");
      what.remove_prefix(unreadable.size());
    }
    const options settings = options::parse(argc, argv);
    runtime rt(settings);
    actions.at(what)(rt);
    std::puts("ok");
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
