// SPDX-License-Identifier: Apache-2.0
// A process that ends itself as `kill -9` would when it has come so far. How far is counted in
// steps: calls by which a node speaks to its launcher and to other nodes, waits and wakes
// (steps.cpp stands in front of the C library's), and tokens, which tell of themselves. Before it
// ends it writes "node N dies".
#pragma once

namespace killed {

// At the k-th step of that kind from now on; k > 0. Once.
void die_at_call(unsigned k);
void die_at_token(unsigned k);
// Wherever it is then, and without a word.
void die_after_us(unsigned us);

// A token runs.
void count_token();

}  // namespace killed
