// SPDX-License-Identifier: Apache-2.0
// The paths of hits, made while the search for further hits goes on: it needs to know only where a
// hit begins and ends. Any worker makes them, and of several nodes any.
#pragma once

#include <deque>
#include <optional>
#include <strata/slot.hpp>
#include <strata/task_scope.hpp>

#include "apps/align/driver.hpp"
#include "apps/align/hits.hpp"

namespace align {

class tracer {
 public:
  /// Of sequences that were lent, if there are several nodes.
  tracer(letters_view ref, const scoring& s, const driver& d);
  ~tracer();

  /// Makes h.steps, sooner or later; h and the query's strand must stay where they are. May
  /// suspend.
  void begin(const field& f, hit& h);
  /// Waits for all of them. Call it once.
  void finish();

 private:
  // What another node makes comes here, if one does.
  struct awaited;

  letters_view ref_;
  scoring score_;
  driver driver_;
  std::optional<strata::task_scope> here_;
  std::deque<awaited> anywhere_;
};

}  // namespace align
