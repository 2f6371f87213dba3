// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdarg>
#include <cstdio>

#include "apps/align/report.hpp"
#include "apps/align/words.hpp"

namespace align {
namespace {

[[gnu::format(printf, 2, 3)]] void print(std::string& to, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  char line[512];
  const int n = std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  to.append(line, static_cast<std::size_t>(std::clamp(n, 0, static_cast<int>(sizeof line) - 1)));
}

void print_sequence(std::string& to, const char* what, const sequence& s) {
  to += what + strata::brief(s.name);
  if (!s.description.empty()) to += " " + strata::in_brief(s.description);
  to += ", " + grouped(static_cast<std::int64_t>(s.size())) + " letters\n";
}

void print_scoring(std::string& to, const scoring& s) {
  print(to, "scoring    match %d, mismatch %d, ", s.match, s.mismatch);
  if (s.linear())
    print(to, "gap -%d per letter\n", s.open);
  else
    print(to, "gap -%d for its first letter, -%d for each further one\n", s.open, s.extend);
}

void print_finding(std::string& to, const finding& f) {
  print(to, "query      %s to %s%s\n", grouped(f.query_begin).c_str(), grouped(f.query_end).c_str(),
        f.reverse_strand ? " (reverse strand)" : "");
  print(to, "reference  %s to %s\n", grouped(f.ref_begin).c_str(), grouped(f.ref_end).c_str());
  print(to, "identity   %s: %s of %s columns, %s mismatches, %s gap letters in %s gaps\n",
        percent(f.sum.identity()).c_str(), grouped(f.sum.matches).c_str(),
        grouped(f.sum.columns).c_str(), grouped(f.sum.mismatches).c_str(),
        grouped(f.sum.gap_letters).c_str(), grouped(f.sum.gaps).c_str());
}

}  // namespace

std::string text_report(const report_input& in) {
  const comparison& c = in.result;
  std::string out;
  print_sequence(out, "query      ", in.query);
  print_sequence(out, "reference  ", in.ref);
  print_scoring(out, in.options.score);
  out += in.options.global ? "global alignment\n" : "local alignment\n";
  out += "score      " + grouped(c.score) + "\n";
  if (!in.options.global) {
    if (c.score == 0) {
      out += "           no letter of one matches a letter of the other\n";
      return out;
    }
    print(out, "end        %s in the query%s, %s in the reference; %s %s this score\n",
          grouped(c.end_i).c_str(), c.reverse_strand ? "'s reverse strand" : "",
          grouped(c.end_j).c_str(), grouped(c.cells_with_maximum).c_str(),
          c.cells_with_maximum == 1 ? "cell has" : "cells have");
  }
  if (!c.hits.empty()) print_finding(out, c.hits.front());
  if (c.sweep_seconds > 0) {
    print(out, "speed      %.3g cells in %.3g s: %.1f billion per second (%s)\n", c.cells,
          c.sweep_seconds, c.cells / c.sweep_seconds / 1e9, in.kernels.c_str());
  }
  if (in.options.global || c.hits.empty()) return out;
  if (c.hits.size() == 1)
    out += "\nThe best hit:\n";
  else
    print(out, "\nThe best %zu hits that do not overlap on the reference:\n", c.hits.size());
  print(out, "%4s %9s  %-6s %23s %25s %8s %9s %6s\n", "", "score", "strand", "query", "reference",
        "length", "identity", "gaps");
  for (std::size_t k = 0; k < c.hits.size(); ++k) {
    const finding& f = c.hits[k];
    const std::string q = grouped(f.query_begin) + "-" + grouped(f.query_end);
    const std::string r = grouped(f.ref_begin) + "-" + grouped(f.ref_end);
    print(out, "%4zu %9s  %-6s %23s %25s %8s %9s %6s\n", k + 1, grouped(f.score).c_str(),
          f.reverse_strand ? "-" : "+", q.c_str(), r.c_str(), grouped(f.sum.columns).c_str(),
          percent(f.sum.identity()).c_str(), grouped(f.sum.gaps).c_str());
  }
  return out;
}

std::string alignment_text(const report_input& in, const finding& f) {
  constexpr std::int64_t width = 60;
  const sequence turned = f.reverse_strand ? reverse_complement(in.query) : sequence{};
  const std::string& query = f.reverse_strand ? turned.letters : in.query.letters;
  const std::string& ref = in.ref.letters;
  const auto total = static_cast<std::int64_t>(query.size());
  // Positions in the strand that was compared; printed in the query's own coordinates.
  std::int64_t i = f.query_begin == 0 ? 0
                   : f.reverse_strand ? total - f.query_begin
                                      : f.query_begin - 1;
  std::int64_t j = f.ref_begin == 0 ? 0 : f.ref_begin - 1;
  std::string out, top, middle, bottom;
  std::int64_t i0 = i, j0 = j;
  const auto flush = [&] {
    if (top.empty()) return;
    const auto shown = [&](std::int64_t at) { return f.reverse_strand ? total - at : at + 1; };
    // A line without letters of a sequence repeats the position before it.
    print(out, "query %11lld %s %lld\n", static_cast<long long>(shown(i > i0 ? i0 : i0 - 1)),
          top.c_str(), static_cast<long long>(shown(i - 1)));
    print(out, "      %11s %s\n", "", middle.c_str());
    print(out, "ref   %11lld %s %lld\n\n", static_cast<long long>(j > j0 ? j0 + 1 : j0),
          bottom.c_str(), static_cast<long long>(j));
    top.clear();
    middle.clear();
    bottom.clear();
    i0 = i;
    j0 = j;
  };
  for (const path_run& run : f.steps.runs()) {
    for (std::int64_t k = 0; k < run.length; ++k) {
      const char q = run.kind == step::ref_only ? '-' : query[static_cast<std::size_t>(i++)];
      const char r = run.kind == step::query_only ? '-' : ref[static_cast<std::size_t>(j++)];
      top += q;
      bottom += r;
      const bool pair = run.kind == step::pair;
      middle += !pair                                                                  ? ' '
                : q == r && std::string_view("ACGT").find(q) != std::string_view::npos ? '|'
                                                                                       : '.';
      if (static_cast<std::int64_t>(top.size()) == width) flush();
    }
  }
  flush();
  return out;
}

}  // namespace align
