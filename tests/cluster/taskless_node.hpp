// SPDX-License-Identifier: Apache-2.0
// A node that has no tasks, for protocols that are tested alone.
#pragma once
#include <gtest/gtest.h>

#include "cluster/words/surroundings.hpp"
#include "sched/frame_depot.hpp"
#include "strata/detail/worker.hpp"

namespace strata::cluster {

class taskless_node : public local_node {
 public:
  void run_soon(detail::task*) override {}
  detail::task* take_travelling() override { return nullptr; }
  detail::task* take_travelling_from(detail::worker&) override { return nullptr; }
  detail::task* take_shelvable_from(detail::worker&) override { return nullptr; }
  detail::task* take_shared() override { return nullptr; }
  void ask_everybody() override {}
  // Of its worker nothing is known.
  [[nodiscard]] bool is_idle() const override { return false; }
  [[nodiscard]] bool is_still() const override { return false; }
  [[nodiscard]] std::uint32_t load() const override { return 0; }
  void fail(std::exception_ptr) override { ADD_FAILURE(); }
  void settle(bool) override { ADD_FAILURE(); }
  detail::worker& network_worker() override { return worker; }

  detail::frame_depot frames;
  detail::worker worker{frames};
};

}  // namespace strata::cluster
