// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>

#include <cstdio>
#include <exception>
#include <memory>
#include <optional>
#include <strata/error.hpp>
#include <strata/launched.hpp>

#include "apps/align/comparison.hpp"
#include "apps/align/report.hpp"
#include "apps/align/sequence.hpp"
#include "apps/align/significance.hpp"
#include "apps/common/output_file.hpp"
#include "apps/common/program.hpp"
#include "src/base/shortened.hpp"

namespace align {
namespace {

struct command {
  std::string query, ref, query_record, ref_record, strand, kernels;
  std::optional<std::string> svg;
  int match = 1, mismatch = -1, gap = 2, gap_open = 0, gap_extend = 0;
  bool global = false, alignment = false, explain = false;
  std::size_t hits = 10;
  std::int32_t least_score = 1;
};

// Costs may be written as such (2) or as what they add to the score (-2).
apps::requirement cost() {
  return apps::whole_number(-max_parameter, max_parameter, "the cost of a gap");
}

scoring scoring_of(const apps::command_line& cli, const command& c) {
  const bool open = cli.given("--gap-open"), extend = cli.given("--gap-extend");
  if (open != extend)
    throw strata::user_error(
        "--gap-open and --gap-extend belong together; for gaps that cost the same per letter use "
        "--gap");
  if (open && cli.given("--gap"))
    throw strata::user_error(
        "--gap is for linear gaps, --gap-open and --gap-extend for affine ones; give either");
  scoring s;
  s.match = c.match;
  s.mismatch = c.mismatch;
  s.open = std::abs(open ? c.gap_open : c.gap);
  s.extend = std::abs(open ? c.gap_extend : c.gap);
  if (s.open == 0 || s.extend == 0)
    throw strata::user_error("a gap must cost at least 1 per letter");
  if (s.open < s.extend) {
    throw strata::user_error("--gap-open " + std::to_string(s.open) +
                             " is less than --gap-extend " + std::to_string(s.extend) +
                             "; the first letter of a gap cannot be cheaper than the next");
  }
  return s;
}

void describe_flags(apps::command_line& cli, command& c) {
  cli.add("QUERY", c.query, "FASTA file, plain or gzip").required();
  cli.add("REF", c.ref, "FASTA file, plain or gzip").required();
  cli.add("--match", c.match, "added for a pair of equal letters [1]")
      .check(apps::whole_number(1, max_parameter, "what a match adds"));
  cli.add("--mismatch", c.mismatch, "added for any other pair; zero or negative [-1]")
      .check(apps::whole_number(-max_parameter, 0, "what a mismatch adds; write -1 to subtract 1"));
  cli.add("--gap", c.gap, "cost of each letter in a gap; 2 and -2 mean the same [2]").check(cost());
  cli.add("--gap-open", c.gap_open, "affine gaps: cost of a gap's first letter").check(cost());
  cli.add("--gap-extend", c.gap_extend, "affine gaps: cost of each further letter").check(cost());
  cli.add_flag("--global", c.global, "align both sequences from end to end (Needleman-Wunsch)");
  cli.add("--strand", c.strand,
          "of the query: forward, reverse or both [forward; with --explain both]");
  cli.add("--hits", c.hits,
          "how many alignments to report that do not overlap on the reference [10; with "
          "--explain 60]")
      .check(apps::whole_number(0, 100'000, "alignments"));
  cli.add("--min-score", c.least_score,
          "report no alignment below this score [1; with --explain what chance hardly reaches]")
      .check(apps::whole_number(1, max_score, "a score"));
  cli.add_flag("--alignment", c.alignment, "print the best alignment letter by letter");
  cli.add_flag("--explain", c.explain, "say in plain words what was found");
  cli.add("--svg", c.svg, "draw where along both sequences the hits lie").type_name("FILE");
  cli.add("--query-record", c.query_record, "which record of QUERY, if it has several [the first]")
      .type_name("NAME");
  cli.add("--ref-record", c.ref_record, "which record of REF [the first]").type_name("NAME");
  cli.add("--kernels", c.kernels,
          "vector instructions: baseline, avx2 or avx512 [the widest there are]")
      .type_name("NAME");
}

// What a comparison from end to end would not look at.
void refuse_beside_global(const apps::command_line& cli, const command& c) {
  for (const char* const flag : {"--explain", "--hits", "--min-score", "--strand"}) {
    if (!cli.given(flag) || (flag == std::string_view("--strand") && c.strand == "forward"))
      continue;
    throw strata::user_error(
        std::string(flag) +
        " is for local alignments; --global aligns both sequences as they are, "
        "from end to end: leave one of them out");
  }
}

// Each node would get a part of it, and of standard input, a device on other nodes, node 0 all.
// That takes all, as it may be the only one; where there are others, the first of them says why
// they end.
void refuse_pipe(apps::program& p, const std::string& path) {
  struct stat s {};
  if (p.is_first_node() || ::stat(path.c_str(), &s) != 0) return;
  if (!S_ISFIFO(s.st_mode) && !S_ISCHR(s.st_mode)) return;
  if (strata::launched_node(p.runtime_options()) == 1u) p.differs_from_first_node();
  throw strata::user_error(
      path +
      ": is a pipe or a device, and each node of a job reads both sequences by itself; "
      "give a file that all can read");
}

sequence read(apps::program& p, const std::string& path, const std::string& record) {
  refuse_pipe(p, path);
  sequence s = read_fasta(path, record);
  if (record.empty() && s.records_in_file > 1 && p.speaks()) {
    std::fprintf(stderr, "align: %s holds %zu sequences; taking the first, %s\n", path.c_str(),
                 s.records_in_file, strata::in_quotes(s.name).c_str());
  }
  return s;
}

// By whatever name: a picture in its place would be all that is left of it.
void refuse_to_overwrite(const std::string& input, const std::string& output) {
  struct stat in {
  }, out{};
  if (::stat(input.c_str(), &in) == 0 && ::stat(output.c_str(), &out) == 0 && S_ISREG(in.st_mode) &&
      in.st_dev == out.st_dev && in.st_ino == out.st_ino)
    throw strata::user_error("--svg: " + output + " is the input " + input +
                             "; choose another path for the picture");
}

// A comparison may have taken hours: whatever becomes of the picture, its report is still to come.
std::exception_ptr problem_of_writing(apps::output_file& svg, const report_input& in) noexcept {
  try {
    svg.write(svg_picture(in));
    svg.commit();
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

comparison_options options_of(apps::program& p, const command& c, const sequence& query,
                              const sequence& ref) {
  comparison_options o;
  o.score = scoring_of(p.cli(), c);
  o.global = c.global;
  const std::string strand = !c.strand.empty() ? c.strand : c.explain ? "both" : "forward";
  if (strand == "both")
    o.which = strands::both;
  else if (strand == "reverse")
    o.which = strands::reverse;
  else if (strand != "forward")
    throw strata::user_error("--strand: " + strata::in_quotes(strand) +
                             " is none of forward, reverse, both");
  const auto m = static_cast<std::int64_t>(query.size()), n = static_cast<std::int64_t>(ref.size());
  if (!scores_fit(o.score, m, n, c.global)) {
    throw strata::user_error("scores could exceed " + std::to_string(max_score) +
                             " with sequences this long; make the parameters smaller");
  }
  o.hits = c.explain && !p.cli().given("--hits") ? 60 : c.hits;
  o.least_score = c.least_score;
  return o;
}

std::int32_t chance_of(const comparison_options& o, const sequence& query, const sequence& ref) {
  return chance_score(o.score, static_cast<double>(query.size()) * static_cast<double>(ref.size()) *
                                   (o.which == strands::both ? 2 : 1));
}

int body(apps::program& p) {
  command c;
  describe_flags(p.cli(), c);
  p.prefer_on_several_nodes(apps::style::fibers);
  p.offer_styles({apps::style::fork_join, apps::style::fibers, apps::style::serial});
  p.cli().add_footer(
      "On several nodes (strata run -n 2 align ...) every node reads both files (no pipes) and "
      "computes its share of a local comparison, in the style fibers; --global and the other "
      "styles are work of node 0.");
  p.parse();

  driver d;
  d.kernels = find_kernels(c.kernels.empty() ? nullptr : c.kernels.c_str());
  if (!d.kernels)
    throw strata::user_error("--kernels: " + strata::in_quotes(c.kernels) +
                             " is unknown, or this processor cannot run it");
  // Complain before reading large files.
  scoring_of(p.cli(), c);
  if (c.global) refuse_beside_global(p.cli(), c);
  if (c.svg) {
    for (const std::string& input : {c.query, c.ref}) refuse_to_overwrite(input, *c.svg);
  }
  const sequence query = read(p, c.query, c.query_record);
  const sequence ref = read(p, c.ref, c.ref_record);
  comparison_options o = options_of(p, c, query, ref);
  const std::int32_t chance = c.explain ? chance_of(o, query, ref) : 0;
  if (c.explain && !p.cli().given("--min-score")) o.least_score = std::max(1, chance);
  // Now, so that an output that cannot be written is reported before the work.
  std::unique_ptr<apps::output_file> svg;
  if (c.svg && p.is_first_node()) svg = std::make_unique<apps::output_file>(*c.svg);

  lend_sequences(query, ref, o.score);
  const comparison result = p.timed([&] {
    d.how = p.how();
    d.workers = p.workers();
    if (d.how == apps::style::fibers) d.nodes = strata::num_nodes();
    return compare(query, ref, o, d, true);
  });

  const report_input in{query, ref, o, result, chance, d.kernels->name};
  std::exception_ptr unfinished_picture;
  if (result.ok) {
    if (svg) unfinished_picture = problem_of_writing(*svg, in);
    std::fputs((c.explain ? plain_words(in) : text_report(in)).c_str(), stdout);
    if (c.alignment && !result.hits.empty())
      std::printf("\n%s", alignment_text(in, result.hits.front()).c_str());
  }
  const int code = p.finish(json_parameters(in), json_result(in), result.ok);
  if (unfinished_picture != nullptr) std::rethrow_exception(unfinished_picture);
  return code;
}

}  // namespace
}  // namespace align

int main(int argc, char** argv) {
  return apps::run_program(
      "align", "Compares two DNA sequences cell by cell: Smith-Waterman or Needleman-Wunsch.", argc,
      argv, align::body);
}
