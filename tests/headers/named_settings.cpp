// SPDX-License-Identifier: Apache-2.0
// Settings that are given by their names, one or a few of them: no compiler misses the others. That
// it builds is the test.
#include <strata/grid.hpp>
#include <strata/options.hpp>
#include <strata/parallel.hpp>
#include <strata/thread.hpp>

#pragma GCC diagnostic error "-Wmissing-field-initializers"

namespace strata::test {

extern const options first, later;
const options first{.workers = 2};
const options later{.bind = false, .shelf = 0};
extern const grid torus;
const grid torus{.extent = {4, 4}};
extern const grain fine;
const grain fine{.step = 1};
extern const thread_attributes attributes;
const thread_attributes attributes{.preemptible = true};

}  // namespace strata::test
