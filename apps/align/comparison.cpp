// SPDX-License-Identifier: Apache-2.0
#include "apps/align/comparison.hpp"

#include <chrono>
#include <memory>

#include "apps/align/traceback.hpp"

namespace align {
namespace {

using clock = std::chrono::steady_clock;

double seconds_since(clock::time_point start) {
  return std::chrono::duration<double>(clock::now() - start).count();
}

// Checks the path against the score, and against the stretches it claims to align.
finding describe(const path& steps, std::int64_t score, letters_view query, letters_view ref,
                 const scoring& s, bool& ok) {
  finding f;
  f.score = score;
  f.steps = steps;
  f.sum = summarize(steps, query, ref, s);
  if (f.sum.score != score || f.sum.query_letters != query.size() ||
      f.sum.ref_letters != ref.size())
    ok = false;
  return f;
}

void compare_global(const sequence& query, const sequence& ref, const comparison_options& o,
                    const driver& d, bool show_progress, comparison& out) {
  const letters_view q{query.codes}, r{ref.codes};
  out.cells = static_cast<double>(q.size()) * static_cast<double>(r.size());
  if (q.size() == 0 || r.size() == 0) {
    out.score = -o.score.gap(q.size() + r.size());
  } else {
    const auto start = clock::now();
    sweep_options options;
    options.score = o.score;
    options.local = false;
    options.keep_last_row = true;
    sweep whole(q, r, d.prepare(options));
    apps::progress progress("align", show_progress ? static_cast<std::uint64_t>(whole.tiles()) : 0);
    driver with_progress = d;
    with_progress.progress = &progress;
    with_progress.run(whole);
    out.score = whole.last_row().back();
    out.sweep_seconds = seconds_since(start);
  }
  finding f = describe(global_path(q, r, out.score, o.score, d), out.score, q, r, o.score, out.ok);
  f.query_begin = q.size() > 0 ? 1 : 0;
  f.query_end = q.size();
  f.ref_begin = r.size() > 0 ? 1 : 0;
  f.ref_end = r.size();
  out.end_i = q.size();
  out.end_j = r.size();
  out.cells_with_maximum = 1;
  out.hits.push_back(std::move(f));
}

// All of them, on the nodes that it pays for. What it returns is what fields[].tiles points to.
std::vector<std::unique_ptr<sweep>> sweep_all(std::vector<field>& fields, letters_view r,
                                              const comparison_options& o, const driver& d,
                                              bool show_progress, comparison& out) {
  const auto start = clock::now();
  std::vector<std::unique_ptr<sweep>> sweeps(fields.size());
  d.for_each(sweeps.size(), [&](std::size_t f) {
    sweep_options options;
    options.score = o.score;
    options = d.prepare(options);
    options.workers *= d.nodes;
    sweeps[f] = std::make_unique<sweep>(fields[f].query, r, options);
    fields[f].tiles = sweeps[f].get();
  });
  std::uint64_t tiles = 0;
  for (const field& f : fields) {
    tiles += static_cast<std::uint64_t>(f.tiles->tiles());
    out.cells += static_cast<double>(f.query.size()) * static_cast<double>(r.size());
  }
  const bool shared = d.shares(static_cast<std::int64_t>(tiles), driver::fewest_tiles_to_share);
  {
    // Of several nodes, node 0 speaks for all: they go about as fast as each other.
    apps::progress progress("align", show_progress ? tiles / (shared ? d.nodes : 1) : 0);
    driver with_progress = d;
    with_progress.progress = &progress;
    std::vector<part> parts;
    for (std::size_t f = 0; f < fields.size(); ++f)
      parts.push_back({sweeps[f].get(), fields[f].reverse_strand});
    out.nodes = with_progress.run_all(parts, driver::fewest_tiles_to_share);
    for (const auto& one : sweeps) one->release();
  }
  out.sweep_seconds = seconds_since(start);
  return sweeps;
}

// Notes the best cell; returns the number of its field.
std::size_t note_best(const std::vector<field>& fields, comparison& out) {
  std::size_t best_field = 0;
  for (std::size_t f = 0; f < fields.size(); ++f) {
    const best_cell& best = fields[f].tiles->best();
    const std::int64_t score = best.count() > 0 ? best.score() : 0;
    if (score <= out.score) continue;
    out.score = score;
    out.end_i = best.first().row + 1;
    out.end_j = best.first().column + 1;
    out.cells_with_maximum = best.count();
    out.reverse_strand = fields[f].reverse_strand;
    best_field = f;
  }
  return best_field;
}

// As people count: from 1, and along the query as it was given.
finding finding_of(const hit& h, const field& from, letters_view r, const scoring& s, bool& ok) {
  finding f = describe(h.steps, h.score, from.query.sub(h.begin.row, h.end.row - h.begin.row + 1),
                       r.sub(h.begin.column, h.end.column - h.begin.column + 1), s, ok);
  f.reverse_strand = from.reverse_strand;
  f.query_begin = h.begin.row + 1;
  f.query_end = h.end.row + 1;
  if (f.reverse_strand) {
    f.query_begin = from.query.size() - h.begin.row;
    f.query_end = from.query.size() - h.end.row;
  }
  f.ref_begin = h.begin.column + 1;
  f.ref_end = h.end.column + 1;
  return f;
}

void compare_local(const sequence& query, const sequence& ref, const comparison_options& o,
                   const driver& d, bool show_progress, comparison& out) {
  sequence other_strand;
  if (o.which != strands::forward) other_strand = reverse_complement(query);
  const letters_view r{ref.codes};
  std::vector<field> fields;
  if (o.which != strands::reverse) fields.push_back({nullptr, {query.codes}, false});
  if (o.which != strands::forward) fields.push_back({nullptr, {other_strand.codes}, true});
  const auto sweeps = sweep_all(fields, r, o, d, show_progress, out);
  const std::size_t best_field = note_best(fields, out);
  if (out.score == 0) {
    out.cells_with_maximum =
        static_cast<std::int64_t>(query.size()) * static_cast<std::int64_t>(ref.size());
    return;
  }
  hits_found found = find_hits(fields, r, o.score, o.hits, o.least_score, d);
  out.nodes_for_hits = std::move(found.nodes);
  const std::vector<hit>& hits = found.hits;
  // The refined search must rediscover what the sweep saw.
  const auto is_best = [&](const hit& h) {
    return h.score == out.score && h.field == best_field &&
           h.end == cell{out.end_i - 1, out.end_j - 1};
  };
  if (o.hits > 0 && o.least_score <= out.score && (hits.empty() || !is_best(hits.front())))
    out.ok = false;
  for (const hit& h : hits) out.hits.push_back(finding_of(h, fields[h.field], r, o.score, out.ok));
}

}  // namespace

comparison compare(const sequence& query, const sequence& ref, const comparison_options& o,
                   driver d, bool show_progress) {
  comparison out;
  d.progress = nullptr;
  if (o.global)
    compare_global(query, ref, o, d, show_progress, out);
  else
    compare_local(query, ref, o, d, show_progress, out);
  return out;
}

}  // namespace align
