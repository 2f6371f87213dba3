// SPDX-License-Identifier: Apache-2.0
#include "apps/align/regions.hpp"

#include <algorithm>

namespace align {

std::vector<region> group(const std::vector<finding>& findings, std::int64_t reach) {
  std::vector<const finding*> order;
  for (const finding& f : findings) order.push_back(&f);
  std::sort(order.begin(), order.end(),
            [](auto* a, auto* b) { return a->ref_begin < b->ref_begin; });
  std::vector<region> out;
  for (const finding* f : order) {
    if (out.empty() || f->ref_begin - out.back().end > reach) {
      out.emplace_back();
      out.back().begin = f->ref_begin;
    }
    region& g = out.back();
    g.end = std::max(g.end, f->ref_end);
    g.parts.push_back(f);
    g.matches += f->sum.matches;
    g.columns += f->sum.columns;
    g.score += f->score;
  }
  for (region& g : out) {
    std::vector<std::pair<std::int64_t, std::int64_t>> covered;
    for (const finding* f : g.parts) covered.push_back(std::minmax(f->query_begin, f->query_end));
    std::sort(covered.begin(), covered.end());
    std::int64_t reached = 0;
    for (const auto& [begin, end] : covered) {
      g.query_covered += std::max<std::int64_t>(0, end - std::max(reached, begin - 1));
      reached = std::max(reached, end);
    }
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const region& a, const region& b) { return a.score > b.score; });
  return out;
}

bool rotated(const region& g) {
  std::vector<const finding*> large = g.parts;
  std::stable_sort(large.begin(), large.end(),
                   [](auto* a, auto* b) { return a->score > b->score; });
  std::int64_t score = 0;
  std::size_t count = 0;
  while (count < large.size() && 100 * score < 97 * g.score) score += large[count++]->score;
  large.resize(count);
  std::sort(large.begin(), large.end(),
            [](auto* a, auto* b) { return a->ref_begin < b->ref_begin; });
  int jumps = 0;
  for (std::size_t k = 1; k < large.size(); ++k) {
    if (large[k]->reverse_strand != large[0]->reverse_strand) return false;
    const bool forwards = large[k]->query_begin > large[k - 1]->query_begin;
    if (forwards == large[0]->reverse_strand) ++jumps;
  }
  // At both ends of the jump, or it would be a plain rearrangement: the ring closes where the query
  // ends and begins.
  const auto& first = *large.front();
  const auto& last = *large.back();
  return jumps == 1 && (first.query_begin > last.query_begin) != first.reverse_strand;
}

std::vector<feature> known_features(const sequence& query) {
  constexpr std::size_t lambda_length = 48502;
  if (query.size() != lambda_length || query.name.find("NC_001416") == std::string::npos) return {};
  // Gene coordinates as annotated in NC_001416.1 (first gene's begin to last gene's end).
  return {
      {191, 7965, "head (nu1 to FII)", "head"},
      {7977, 18903, "tail (Z to J)", "tail"},
      {18965, 19585, "lom", "lom"},
      {19650, 22557, "side tail fibre (stf, tfa)", "fibre"},
      {22686, 27700, "b region", "b"},
      {27812, 29078, "integration and excision (int, xis)", "int"},
      {31348, 33232, "recombination (exo, bet, gam)", "red"},
      {33299, 38653, "immunity and control (cIII, N, rex, cI, cro, cII)", "imm"},
      {38686, 40283, "replication (O, P)", "O P"},
      {43886, 44509, "late regulator (Q)", "Q"},
      {45186, 46427, "lysis (S, R, Rz)", "lysis"},
      {46459, 46752, "bor", "bor"},
  };
}

std::string features_in(const std::vector<feature>& all, std::int64_t begin, std::int64_t end) {
  std::vector<std::string> names;
  for (const feature& f : all) {
    const std::int64_t overlap = std::min(end, f.end) - std::max(begin, f.begin) + 1;
    if (overlap <= 0) continue;
    const bool most_of_feature = 2 * overlap >= f.end - f.begin + 1;
    const bool most_of_part = 2 * overlap >= end - begin + 1;
    if (most_of_feature)
      names.emplace_back(f.what);
    else if (most_of_part)
      names.emplace_back(std::string("part of ") + f.what);
  }
  std::string out;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) out += i + 1 == names.size() ? " and " : ", ";
    out += names[i];
  }
  return out;
}

}  // namespace align
