// SPDX-License-Identifier: Apache-2.0
// The sequences of a job: every node reads them, so that work for another node names a stretch of
// them and need not carry it.
#pragma once

#include <cstdint>

#include "apps/align/kernel.hpp"
#include "apps/align/packed.hpp"
#include "apps/align/scoring.hpp"
#include "apps/align/sequence.hpp"

namespace align {

/// Every node of a job calls this before it starts its runtime. The sequences must stay valid. One
/// comparison at a time in a process.
void lend_sequences(const sequence& query, const sequence& ref, const scoring& score);

/// What was lent. Any thread may call these.
const scoring& lent_scoring();
letters_view lent_query(bool reverse_strand);
letters_view lent_ref();

/// Of the sequences and parameters; node 0 sends it with what it wants done.
std::uint32_t lent_checksum();
/// Throws strata::user_error, which names this node, where this node's is another one.
void expect_lent(std::uint32_t checksum);
/// Node 0's kernels. Throws strata::user_error where this node cannot run them.
const kernel_set& kernels_of_node_0(const char* name);

}  // namespace align
