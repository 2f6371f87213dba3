// SPDX-License-Identifier: Apache-2.0
// What nodes say to each other that share a comparison.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <strata/global_ptr.hpp>
#include <strata/mailbox.hpp>
#include <strata/slot.hpp>

#include "apps/align/best_cell.hpp"
#include "apps/align/part.hpp"

namespace align {

inline constexpr std::size_t parts_max = 2;
using mailbox_ptr = strata::global_ptr<strata::mailbox>;

// A part as the other nodes make it. (No field leaves room for padding, which would travel.)
struct part_plan {
  std::int64_t reverse = 0, row = 0, rows = 0, column = 0, columns = 0, phase = 0;
  std::int32_t height_index = 0, block_steps = 0, top_border = 0, only_strip = -1, only_block = -1;
  std::int32_t left_borders = 0;  // how many, at `left` of node 0
  strata::global_ptr<std::int32_t> left;
};

// What all nodes must agree on.
struct plan {
  std::array<part_plan, parts_max> parts;
  char kernels[16] = {};
  std::uint32_t count = 0;  // of the parts
  std::uint32_t checksum = 0;
  std::uint32_t nodes = 0;  // that take part: the first of the job
  std::uint32_t unused = 0;
};

struct best_report {
  std::int64_t score = 0, count = 0;
  cell first;
};
struct report {
  node_work work;
  std::array<best_report, parts_max> best;
};

// Where a node's results go.
struct destination {
  strata::global_ptr<report> result;
  std::array<strata::global_ptr<std::int32_t>, parts_max> maxima;
  strata::slot_ptr arrived;  // one signal per group and one per node
};

// What travels in front of a border.
struct item_head {
  enum class what : std::int32_t { border, state, farewell } kind = what::border;
  std::int32_t part = 0, strip = 0, block = 0;
  std::int32_t bytes = 0;         // the format of the scores
  std::int32_t unused = 0;        // no indeterminate padding on the wire
  strata::slot_ptr acknowledged;  // farewell
};

// The mailboxes of the nodes before and after this one.
struct neighbours {
  mailbox_ptr before, after;
};

}  // namespace align
