// SPDX-License-Identifier: Apache-2.0
#include "apps/align/report.hpp"

namespace align {
namespace {

const char* strand_name(bool reverse) { return reverse ? "-" : "+"; }

nlohmann::json as_json(const finding& f) {
  std::string cigar;
  for (const path_run& run : f.steps.runs())
    cigar += std::to_string(run.length) + static_cast<char>(run.kind);
  return {{"score", f.score},
          {"strand", strand_name(f.reverse_strand)},
          {"query_begin", f.query_begin},
          {"query_end", f.query_end},
          {"ref_begin", f.ref_begin},
          {"ref_end", f.ref_end},
          {"length", f.sum.columns},
          {"matches", f.sum.matches},
          {"mismatches", f.sum.mismatches},
          {"gap_letters", f.sum.gap_letters},
          {"gaps", f.sum.gaps},
          {"identity", f.sum.identity()},
          {"cigar", cigar}};
}

}  // namespace

nlohmann::json json_parameters(const report_input& in) {
  const comparison_options& o = in.options;
  // A header may hold bytes that are not UTF-8, which JSON cannot carry.
  const auto text = [](std::string s) {
    for (char& c : s) {
      if (static_cast<unsigned char>(c) > 126) c = '?';
    }
    return s;
  };
  return {{"query", text(in.query.name)},
          {"query_length", in.query.size()},
          {"ref", text(in.ref.name)},
          {"ref_length", in.ref.size()},
          {"mode", o.global ? "global" : "local"},
          {"match", o.score.match},
          {"mismatch", o.score.mismatch},
          {"gap_open", o.score.open},
          {"gap_extend", o.score.extend},
          {"strand", o.which == strands::forward   ? "forward"
                     : o.which == strands::reverse ? "reverse"
                                                   : "both"},
          {"hits", o.hits},
          {"min_score", o.least_score},
          {"kernels", in.kernels}};
}

nlohmann::json json_result(const report_input& in) {
  const comparison& c = in.result;
  nlohmann::json out = {
      {"score", c.score},
      {"strand", strand_name(c.reverse_strand)},
      {"end_i", c.end_i},
      {"end_j", c.end_j},
      {"cells_with_maximum", c.cells_with_maximum},
      {"cells", c.cells},
      {"sweep_seconds", c.sweep_seconds},
      {"cells_per_second", c.sweep_seconds > 0 ? c.cells / c.sweep_seconds : 0.0}};
  nlohmann::json hits = nlohmann::json::array();
  for (const finding& f : c.hits) hits.push_back(as_json(f));
  if (!c.hits.empty()) {
    const finding& best = c.hits.front();
    out["query_begin"] = best.query_begin;
    out["query_end"] = best.query_end;
    out["ref_begin"] = best.ref_begin;
    out["ref_end"] = best.ref_end;
    out["identity"] = best.sum.identity();
  }
  out["hits"] = std::move(hits);
  if (!c.nodes.empty()) {
    nlohmann::json nodes = nlohmann::json::array();
    for (const node_work& w : c.nodes)
      nodes.push_back({{"tiles", w.tiles}, {"cells", w.cells}, {"bytes_sent", w.bytes_sent}});
    // What was swept once more beside hits, without the parts that node 0 sweeps alone.
    for (std::size_t n = 0; n < c.nodes_for_hits.size(); ++n)
      nodes[n]["tiles_beside_hits"] = c.nodes_for_hits[n].tiles;
    out["per_node"] = std::move(nodes);
  }
  return out;
}

}  // namespace align
