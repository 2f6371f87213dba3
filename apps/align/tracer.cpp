// SPDX-License-Identifier: Apache-2.0
#include "apps/align/tracer.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <strata/detail/check.hpp>
#include <strata/fiber.hpp>

#include "apps/align/lent.hpp"
#include "apps/align/traceback.hpp"

namespace align {
namespace {

// A run of a path as it travels: a number has no padding.
std::int64_t packed(const path_run& r) { return r.length * 256 + static_cast<char>(r.kind); }
path_run unpacked(std::int64_t n) { return {static_cast<step>(n % 256), n / 256}; }

// Where a path is wanted.
struct destination {
  strata::global_ptr<std::int64_t> runs, count;
  strata::slot_ptr arrived;  // a signal for either
};

// All of a stretch of the query against all of a stretch of the reference.
struct alignment_wanted {
  std::int64_t reverse = 0, row = 0, rows = 0, column = 0, columns = 0, score = 0;
  destination to;
  std::int64_t runs_max = 0;  // room for them
  char kernels[16] = {};
  std::uint32_t checksum = 0;
  std::uint32_t unused = 0;  // no indeterminate padding on the wire
};

// Of a path that scores `score`: it can pay for so many gaps only, and has pairs between them.
std::int64_t runs_max(std::int64_t rows, std::int64_t columns, std::int64_t score,
                      const scoring& s) {
  const std::int64_t letters = rows + columns;
  if (s.open <= 0) return letters;
  return std::min(letters, 2 * ((std::min(rows, columns) * s.match - score) / s.open) + 1);
}

// A token: whichever node has nothing else to do. A fiber must not fork, so it goes alone.
struct trace : strata::threaded {
  alignment_wanted what;

  void start() {
    expect_lent(what.checksum);
    driver alone;
    alone.kernels = &kernels_of_node_0(what.kernels);
    const path found =
        global_path(lent_query(what.reverse != 0).sub(what.row, what.rows),
                    lent_ref().sub(what.column, what.columns), what.score, lent_scoring(), alone);
    std::vector<std::int64_t> runs;
    for (const path_run& r : found.runs()) runs.push_back(packed(r));
    STRATA_CHECK(static_cast<std::int64_t>(runs.size()) <= what.runs_max, runs.size());
    const destination to = what.to;
    strata::block_move_sync(strata::to_global(runs.data()), to.runs, runs.size(), to.arrived);
    strata::put_sync(static_cast<std::int64_t>(runs.size()), to.count, to.arrived);
    terminate();
  }
};

}  // namespace

struct tracer::awaited {
  awaited(hit& h, std::int64_t most)
      : whose(&h), runs(new std::int64_t[static_cast<std::size_t>(most)]) {}

  void finish() {
    arrived.wait();
    for (std::int64_t i = 0; i < count; ++i) {
      const path_run r = unpacked(runs[static_cast<std::size_t>(i)]);
      whose->steps.add(r.kind, r.length);
    }
  }

  hit* whose;
  std::unique_ptr<std::int64_t[]> runs;
  std::int64_t count = 0;
  strata::completion arrived{2};
};

tracer::tracer(letters_view ref, const scoring& s, const driver& d)
    : ref_(ref), score_(s), driver_(d) {}

tracer::~tracer() = default;

void tracer::begin(const field& f, hit& h) {
  const std::ptrdiff_t rows = h.end.row - h.begin.row + 1;
  const std::ptrdiff_t columns = h.end.column - h.begin.column + 1;
  if (driver_.has_other_nodes()) {
    alignment_wanted what;
    what.runs_max = runs_max(rows, columns, h.score, score_);
    awaited& a = anywhere_.emplace_back(h, what.runs_max);
    what.reverse = f.reverse_strand ? 1 : 0;
    what.row = h.begin.row;
    what.rows = rows;
    what.column = h.begin.column;
    what.columns = columns;
    what.score = h.score;
    what.to = {strata::to_global(a.runs.get()), strata::to_global(&a.count), a.arrived.sptr()};
    std::strncpy(what.kernels, driver_.kernels->name, sizeof what.kernels - 1);
    what.checksum = lent_checksum();
    return strata::token<trace>(what);
  }
  const auto make = [this, &f, &h, rows, columns] {
    h.steps = global_path(f.query.sub(h.begin.row, rows), ref_.sub(h.begin.column, columns),
                          h.score, score_, driver_);
  };
  if (driver_.how == apps::style::serial) return make();
  if (!here_) here_.emplace();
  here_->spawn(make);
}

void tracer::finish() {
  if (here_) here_->sync();
  for (awaited& a : anywhere_) a.finish();
}

}  // namespace align
