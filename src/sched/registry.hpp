// SPDX-License-Identifier: Apache-2.0
// Which runtimes there are, for those who show them to people.
#pragma once
#include <functional>

namespace strata::detail {

class scheduler;

void enter_registry(scheduler& s);
// Afterwards nobody looks at s.
void leave_registry(scheduler& s);
// In the child of a fork: none is left.
void forget_runtimes();
// In the order in which they came. None of them ends meanwhile.
void for_each_runtime(const std::function<void(scheduler&)>& look);

}  // namespace strata::detail
