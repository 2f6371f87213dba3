// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>

#include "apps/align/regions.hpp"
#include "apps/align/report.hpp"
#include "apps/align/words.hpp"

namespace align {
namespace {

// Prophages are tens of kilobases long; what lies closer than this belongs together.
constexpr std::int64_t region_reach = 15'000;
constexpr std::size_t regions_told = 4;
constexpr std::size_t parts_told = 12;

bool is_virus(const sequence& s) {
  std::string text = s.description;
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text.find("phage") != std::string::npos || text.find("virus") != std::string::npos;
}

std::string range(std::int64_t a, std::int64_t b) {
  return grouped(std::min(a, b)) + " to " + grouped(std::max(a, b));
}

std::string strand_words(const region& g) {
  const auto reverse =
      std::count_if(g.parts.begin(), g.parts.end(), [](auto* f) { return f->reverse_strand; });
  if (reverse == 0) return "in the same direction as the reference";
  if (reverse == static_cast<std::ptrdiff_t>(g.parts.size())) return "on the reverse strand";
  return "in both directions";
}

std::string megabytes(std::int64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f MB", static_cast<double>(bytes) / 1e6);
  return text;
}

// Who did the comparison, if several nodes did.
std::string shares(const comparison& c) {
  if (c.nodes.empty()) return {};
  char line[160];
  std::string out = std::to_string(c.nodes.size()) +
                    " nodes (programs that work together, each on processor cores of its own) "
                    "shared the work:\n";
  std::snprintf(line, sizeof line, "     %4s  %22s  %6s  %16s  %14s\n", "node",
                "pairs of positions", "share", "portions of work", "sent to others");
  out += line;
  for (std::size_t n = 0; n < c.nodes.size(); ++n) {
    const node_work& w = c.nodes[n];
    std::snprintf(line, sizeof line, "     %4zu  %22s  %6s  %16s  %14s\n", n,
                  grouped(w.cells).c_str(), percent(static_cast<double>(w.cells) / c.cells).c_str(),
                  grouped(w.tiles).c_str(), megabytes(w.bytes_sent).c_str());
    out += line;
  }
  return out + "\n";
}

// Where it lies and what it holds.
std::string words_of(const region& g, const sequence& query, bool is_first) {
  const bool virus = is_virus(query);
  const bool large = g.query_covered >= 1000;
  std::string out;
  if (is_first)
    out = virus ? "The clearest remains of the virus lie" : "The clearest match lies";
  else
    out = virus && large ? "More remains of it lie" : "A shorter match lies";
  out += " at positions " + range(g.begin, g.end) + " of the reference,\n   a region of " +
         length_words(g.end - g.begin + 1) + ", " + strand_words(g) + ". It holds " +
         length_words(g.query_covered) + " of " + title(query) + " (" +
         percent(static_cast<double>(g.query_covered) / static_cast<double>(query.size())) +
         ")\n   in " + std::to_string(g.parts.size()) +
         (g.parts.size() == 1 ? " piece" : " pieces") + ", " + percent(g.identity()) +
         " identical.\n";
  if (virus && is_first && g.query_covered > 10'000) {
    out +=
        "   So long a stretch, so well preserved, in one place: this is a prophage, a virus of "
        "this family that once\n"
        "   inserted itself into the genome of an ancestor of this bacterium and has been copied "
        "with it ever since.\n";
  }
  if (virus && is_first && rotated(g)) {
    out +=
        "   The large pieces stand in the virus's own order, but begin in its middle: viruses of "
        "this kind close their DNA to a\n"
        "   ring before they insert it, and the ring was opened elsewhere than where the "
        "published sequence begins.\n";
  }
  return out;
}

// Not all, of a region of many, but the best.
std::vector<const finding*> parts_to_tell(const region& g) {
  std::vector<const finding*> parts = g.parts;
  if (parts.size() > parts_told) {
    std::stable_sort(parts.begin(), parts.end(),
                     [](auto* a, auto* b) { return a->score > b->score; });
    parts.resize(parts_told);
    std::sort(parts.begin(), parts.end(),
              [](auto* a, auto* b) { return a->ref_begin < b->ref_begin; });
  }
  return parts;
}

std::string line_of(const finding& f, const std::vector<feature>& features) {
  char line[160];
  std::snprintf(line, sizeof line, "     %21s  %c  %15s of the query  %10s  %6s identical",
                (grouped(f.ref_begin) + "-" + grouped(f.ref_end)).c_str(),
                f.reverse_strand ? '-' : '+',
                (grouped(f.query_begin) + "-" + grouped(f.query_end)).c_str(),
                length_words(f.sum.columns).c_str(), percent(f.sum.identity()).c_str());
  std::string out = line;
  const std::string what = features_in(features, std::min(f.query_begin, f.query_end),
                                       std::max(f.query_begin, f.query_end));
  if (!what.empty()) out += "  " + what;
  return out + "\n";
}

// Of scores that say nothing.
std::string no_claim(const report_input& in) {
  return "The best score is " + grouped(in.result.score) +
         ", which says nothing: where mismatches and gaps cost as little as here, unrelated "
         "sequences match over\n"
         "   hundreds of letters and more, mostly the further the longer they are. Without "
         "--explain the alignments are listed.\n";
}

// Of no alignment that means something.
std::string nothing_told(const report_input& in) {
  const std::string best = "the best score is " + grouped(in.result.score) +
                           ", and unrelated sequences of this size reach up to " +
                           grouped(in.chance) + ".\n";
  if (in.result.score < in.chance)
    return "Nothing was found that chance would not explain: " + best;
  return "No alignment was asked for (" +
         (in.options.hits == 0 ? "--hits 0"
                               : "--min-score " + std::to_string(in.options.least_score)) +
         "), but something was found that chance would not explain: " + best;
}

}  // namespace

std::string plain_words(const report_input& in) {
  const std::string query = title(in.query), ref = title(in.ref);
  std::string out = "We compared " + query + " (" +
                    length_words(static_cast<std::int64_t>(in.query.size())) +
                    ") letter by letter with " + ref + " (" +
                    length_words(static_cast<std::int64_t>(in.ref.size())) + ")";
  if (in.options.which == strands::both) out += ", both strands";
  char line[160];
  std::snprintf(line, sizeof line,
                ":\n%.3g possible pairs of positions in %.1f seconds, none skipped.\n\n",
                in.result.cells, in.result.sweep_seconds);
  out += line;
  out += shares(in.result);

  if (in.chance == 0) return out + no_claim(in);
  std::vector<finding> real;
  for (const finding& f : in.result.hits) {
    if (f.score >= in.chance) real.push_back(f);
  }
  if (real.empty()) return out + nothing_told(in);
  const std::vector<region> regions = group(real, region_reach);
  const std::vector<feature> features = known_features(in.query);
  for (std::size_t k = 0; k < std::min(regions.size(), regions_told); ++k) {
    out += std::to_string(k + 1) + ". " + words_of(regions[k], in.query, k == 0);
    for (const finding* f : parts_to_tell(regions[k])) out += line_of(*f, features);
    out += "\n";
  }
  if (regions.size() > regions_told) {
    out += "Besides, " + std::to_string(regions.size() - regions_told) +
           " smaller places resemble parts of it.\n";
  }
  out += "Scores of " + grouped(std::max(in.chance, in.options.least_score)) +
         " or more are told: chance alone hardly ever reaches that in a comparison of this size.\n";
  return out;
}

}  // namespace align
