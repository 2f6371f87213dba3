// SPDX-License-Identifier: Apache-2.0
// Runs a model through many schedules.
//
// A model derives from rl::test_suite: before() and after() run alone, thread(i) runs in thread i,
// and RL_ASSERT states what must hold. Races on rl::var, deadlocks, endless loops, leaks and use
// after destruction Relacy finds by itself.
#pragma once
#include "any_model.hpp"
#include "relacy.hpp"
//
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <ostream>
#include <string>

namespace strata::model {

struct finding {
  rl::test_result_e result = rl::test_result_success;
  // How many schedules were tried. The last one is the failed one: its number is the seed.
  std::uint64_t schedules = 0;
  // The failed schedule step by step.
  std::string history;
};

// As rl::simulate, which compiles each model for every kind of search that there is: three times as
// much. settings.search_type has to say the same as Search.
template <rl::thread_id_t Threads, template <rl::thread_id_t> class Search>
finding explore(rl::test_params& settings) {
  // Relacy's own string streams, whose memory does not come from the operator new that it watches.
  rl::ostringstream output;
  rl::ostringstream state;
  std::ostream nowhere(nullptr);
  settings.output_stream = &output;
  settings.progress_stream = &nowhere;
  settings.test_name = "model";
  const rl::test_result_e result =
      rl::run_test<any_model<Threads>, Search<Threads>>(settings, state, false);
  if (result != rl::test_result_success) {  // once more, and that schedule step by step
    settings.initial_state = settings.final_state = state.str();
    settings.collect_history = true;
    rl::ostringstream again;
    EXPECT_EQ((rl::run_test<any_model<Threads>, Search<Threads>>(settings, again, true)), result)
        << "the model depends on more than its schedule";
  }
  return {result, settings.stop_iteration, output.str().c_str()};
}

template <class Model, template <rl::thread_id_t> class Search>
finding explore(rl::test_params& settings) {
  constexpr rl::thread_id_t threads = Model::params::thread_count;
  calls_of<Model> model;
  any_model<threads>::explored = &model;
  return explore<threads, Search>(settings);
}

// STRATA_MODEL_EFFORT=100 tries a hundred times as many random schedules: for a night, or after a
// change of the code under test.
inline std::uint64_t effort() {
  const char* given = std::getenv("STRATA_MODEL_EFFORT");
  return given == nullptr ? 1 : std::strtoull(given, nullptr, 10);
}

inline void record(const finding& found) {
  ::testing::Test::RecordProperty("schedules", std::to_string(found.schedules));
}

// Random schedules, the same ones each time: this many thousand, times the effort.
template <class Model>
void expect_correct_at_random(std::uint64_t thousands) {
  rl::test_params settings;
  settings.search_type = rl::sched_random;
  settings.iteration_count = thousands * 1000 * effort();
  const finding found = explore<Model, rl::random_scheduler>(settings);
  EXPECT_EQ(found.result, rl::test_result_success) << found.history;
  record(found);
}

// Every schedule that interrupts a thread at most `interruptions` times against its will. Loads are
// at most one store behind here.
template <class Model>
void expect_correct_always(unsigned interruptions) {
  rl::test_params settings;
  settings.search_type = rl::sched_bound;
  settings.context_bound = interruptions;
  const finding found = explore<Model, rl::context_bound_scheduler>(settings);
  EXPECT_EQ(found.result, rl::test_result_success) << found.history;
  record(found);
}

// A model of mutated code has to fail, and in the expected way.
template <class Model>
void expect_failure(rl::test_result_e wanted) {
  rl::test_params settings;
  settings.search_type = rl::sched_random;
  settings.iteration_count = 1'000'000;
  const finding found = explore<Model, rl::random_scheduler>(settings);
  EXPECT_EQ(found.result, wanted) << rl::test_result_str(found.result) << " instead of "
                                  << rl::test_result_str(wanted) << '\n'
                                  << found.history;
  record(found);
}

}  // namespace strata::model
