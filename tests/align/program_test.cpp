// SPDX-License-Identifier: Apache-2.0
// The align program from outside: exit codes, one-line complaints, no partial output, JSON,
// pictures.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/align/reference.hpp"
#include "tests/apps/run_program.hpp"

namespace align_test {
namespace {

namespace fs = std::filesystem;
using apps_test::outcome;

class program : public testing::Test {
 protected:
  program() {
    std::string name = (fs::temp_directory_path() / "align_test_XXXXXX").string();
    if (!::mkdtemp(name.data())) throw std::runtime_error("no temporary folder");
    folder_ = name;
    put("q.fa", ">q a query\nGGTTGACTA\n");
    put("r.fa", ">r a reference\nTGTTACGG\n");
  }
  ~program() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  void put(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
  }
  std::string get(const std::string& name) const {
    std::ifstream file(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void put_gzip(const std::string& name, const std::string& text, std::size_t cut = 0) const {
    gzFile file = gzopen(path(name).c_str(), "wb");
    gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
    gzclose(file);
    if (cut > 0) fs::resize_file(path(name), fs::file_size(path(name)) - cut);
  }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), {}));
  }

  outcome align(const std::vector<std::string>& more, const std::string& q = "q.fa",
                const std::string& r = "r.fa") const {
    std::vector<std::string> all{"align", path(q), path(r)};
    all.insert(all.end(), more.begin(), more.end());
    return apps_test::run(all);
  }
  // What a user can put right: code 2, one line that begins with the name and mentions `about`,
  // nothing on standard output.
  void expect_refused(const outcome& o, const std::string& about) const {
    EXPECT_EQ(o.exit_code, 2) << o.err;
    EXPECT_EQ(o.err_lines(), 1) << o.err;
    EXPECT_EQ(o.err.rfind("align: ", 0), 0u) << o.err;
    EXPECT_NE(o.err.find(about), std::string::npos) << o.err;
    EXPECT_EQ(o.out, "");
  }

  fs::path folder_;
};

nlohmann::json json_of(const outcome& o) {
  EXPECT_EQ(o.exit_code, 0) << o.err;
  return nlohmann::json::parse(o.last_line());
}

// It has the number of the node that started it, and not its line.
TEST_F(program, what_a_node_starts_is_no_node) {
  const apps_test::variable number("STRATA_NODE", "1");
  const outcome o = align({"--svg", path("a.svg")});
  EXPECT_EQ(o.exit_code, 0) << o.err;
  EXPECT_EQ(get("a.svg").rfind("<svg", 0), 0u);
  expect_refused(align({"--gap", "none"}), "--gap");
  expect_refused(align({"--strata-workers", "none"}), "--strata-workers");
}

TEST_F(program, the_textbook_pair) {
  const auto j = json_of(align({"--match", "3", "--mismatch", "-3", "--gap", "2", "--json"}));
  EXPECT_EQ(j["app"], "align");
  EXPECT_EQ(j["ok"], true);
  EXPECT_EQ(j["nodes"], 1);
  EXPECT_EQ(j["style"], "fork-join");
  EXPECT_TRUE(j["seconds"].is_number());
  EXPECT_TRUE(j["workers"].is_number());
  EXPECT_EQ(j["parameters"]["query_length"], 9);
  const auto& r = j["result"];
  EXPECT_EQ(r["score"], 13);
  EXPECT_EQ(r["end_i"], 7);
  EXPECT_EQ(r["end_j"], 6);
  EXPECT_EQ(r["query_begin"], 2);
  EXPECT_EQ(r["ref_begin"], 2);
  EXPECT_EQ(r["hits"][0]["cigar"], "3M1I2M");
  EXPECT_EQ(r["hits"][0]["matches"], 5);
}

TEST_F(program, prints_the_alignment) {
  const outcome o = align({"--match", "3", "--mismatch", "-3", "--gap", "-2", "--alignment"});
  EXPECT_EQ(o.exit_code, 0);
  EXPECT_NE(o.out.find("query           2 GTTGAC 7\n"), std::string::npos) << o.out;
  EXPECT_NE(o.out.find("                  ||| ||\n"), std::string::npos) << o.out;
  EXPECT_NE(o.out.find("ref             2 GTT-AC 6\n"), std::string::npos) << o.out;
}

TEST_F(program, global_and_affine_and_styles) {
  for (const char* style : {"serial", "fork-join", "fibers"}) {
    EXPECT_EQ(json_of(align({"--global", "--json", "--style", style}))["result"]["score"], 0);
    const auto j = json_of(align({"--gap-open", "5", "--gap-extend", "-2", "--match", "2",
                                  "--mismatch", "-3", "--json", "--style", style}));
    EXPECT_EQ(j["style"], style);
    EXPECT_EQ(j["result"]["score"], 6);
  }
}

TEST_F(program, sequences_of_one_letter) {
  put("a.fa", ">a\nA\n");
  put("t.fa", ">t\nT\n");
  EXPECT_EQ(json_of(align({"--json"}, "a.fa", "a.fa"))["result"]["score"], 1);
  EXPECT_EQ(json_of(align({"--json"}, "a.fa", "t.fa"))["result"]["score"], 0);
  EXPECT_EQ(json_of(align({"--json", "--global"}, "a.fa", "t.fa"))["result"]["score"], -1);
  EXPECT_EQ(align({"--alignment", "--explain"}, "a.fa", "t.fa").exit_code, 0);
}

TEST_F(program, gzip_is_read) {
  put_gzip("q.fa.gz", "\xef\xbb\xbf>q\nACGTACGT\n");
  EXPECT_EQ(json_of(align({"--json"}, "q.fa.gz", "q.fa.gz"))["result"]["score"], 8);
}

TEST_F(program, records_by_name) {
  put("many.fa", ">one\nACGT\n>two\nTTTTTTTT\n");
  const outcome o = align({"--json"}, "many.fa", "many.fa");
  EXPECT_EQ(json_of(o)["result"]["score"], 4);
  EXPECT_EQ(o.err_lines(), 2) << "says that it took the first of several records";
  EXPECT_EQ(json_of(align({"--json", "--query-record", "two", "--ref-record", "two"}, "many.fa",
                          "many.fa"))["result"]["score"],
            8);
  expect_refused(align({"--query-record", "three", "--ref-record", "two"}, "many.fa", "many.fa"),
                 "three");
}

TEST_F(program, bad_files_are_refused) {
  expect_refused(align({}, "none.fa"), "none.fa: cannot open");
  expect_refused(align({}, "."), "cannot");
  put("empty.fa", "");
  expect_refused(align({}, "empty.fa"), "empty");
  put("text.fa", "hello world\n");
  expect_refused(align({}, "q.fa", "text.fa"), "text.fa:1: not FASTA");
  expect_refused(align({}, "q.fa", "/dev/zero"), "/dev/zero:1: not FASTA");
  put("letters.fa", ">x\nACGT\nAC*T\n");
  expect_refused(align({}, "letters.fa"), "letters.fa:3: '*'");
  put("header.fa", ">x\n");
  expect_refused(align({}, "header.fa"), "no letters");
  put_gzip("cut.fa.gz", ">q\n" + seeded_letters(1, 5000) + "\n", 9);
  expect_refused(align({}, "cut.fa.gz"), "ends too early");
  put_gzip("cut2.fa.gz", ">q\n" + seeded_letters(1, 5000) + "\n", 600);
  expect_refused(align({}, "cut2.fa.gz"), "ends too early");
  std::string broken = get("cut.fa.gz");
  broken[broken.size() / 2] = static_cast<char>(broken[broken.size() / 2] ^ 0x55);
  broken[broken.size() / 2 + 1] = static_cast<char>(broken[broken.size() / 2 + 1] ^ 0x55);
  put("broken.fa.gz", broken);
  EXPECT_EQ(align({}, "broken.fa.gz").exit_code, 2);
}

TEST_F(program, bad_flags_are_refused) {
  for (const std::vector<std::string>& flags :
       std::vector<std::vector<std::string>>{{"--match", "0"},
                                             {"--match", "x"},
                                             {"--match", "99999999999999999999"},
                                             {"--match"},
                                             {"--mismatch", "1"},
                                             {"--mismatch", "-10001"},
                                             {"--gap", "0"},
                                             {"--gap", "1.5"},
                                             {"--gap-open", "3"},
                                             {"--gap-extend", "3"},
                                             {"--gap", "2", "--gap-open", "3", "--gap-extend", "1"},
                                             {"--gap-open", "1", "--gap-extend", "2"},
                                             {"--hits", "-1"},
                                             {"--min-score", "0"},
                                             {"--strand", "sideways"},
                                             {"--style", "threads"},
                                             {"--kernels", "mmx"},
                                             {"--no-such-flag"},
                                             {"third.fa"},
                                             {"--strata-no-such"}}) {
    SCOPED_TRACE(testing::PrintToString(flags));
    expect_refused(align(flags), "");
  }
  expect_refused(apps_test::run({"align"}), "");
  expect_refused(apps_test::run({"align", path("q.fa")}), "");
}

TEST_F(program, what_is_of_local_alignments_is_refused_beside_global) {
  for (const std::vector<std::string>& flags :
       std::vector<std::vector<std::string>>{{"--strand", "both"},
                                             {"--strand", "reverse"},
                                             {"--hits", "10"},
                                             {"--min-score", "1"},
                                             {"--explain"}}) {
    std::vector<std::string> all = flags;
    all.emplace_back("--global");
    expect_refused(align(all), flags[0] + " is for local alignments");
  }
  EXPECT_EQ(align({"--global", "--strand", "forward"}).exit_code, 0);
}

TEST_F(program, the_list_of_hits_is_named_by_their_number) {
  EXPECT_NE(align({"--hits", "1"}).out.find("The best hit:\n"), std::string::npos);
  EXPECT_NE(align({}).out.find("hits that do not overlap on the reference:\n"), std::string::npos);
}

TEST_F(program, long_names_are_shortened_for_people) {
  const std::string name(100'000, 'n');
  put("long.fa", ">" + name + " " + name + "\nGTTGAC\n>b\nA\n");
  for (const std::vector<std::string>& flags :
       std::vector<std::vector<std::string>>{{}, {"--explain", "--svg", path("long.svg")}}) {
    const outcome o = align(flags, "long.fa", "long.fa");
    EXPECT_EQ(o.exit_code, 0) << o.err;
    EXPECT_LT(o.out.size() + o.err.size(), 10'000U);
  }
  EXPECT_LT(get("long.svg").size(), 10'000U);
  EXPECT_EQ(json_of(align({"--json"}, "long.fa"))["parameters"]["query"], name)
      << "a program gets all of it";
}

TEST_F(program, scores_that_could_overflow_are_refused) {
  put("long.fa", std::string(">x\n").append(120'000, 'A').append("\n"));
  expect_refused(align({"--match", "10000"}, "long.fa", "long.fa"), "make the parameters smaller");
}

TEST_F(program, pictures_are_whole_or_not_there) {
  EXPECT_EQ(align({"--svg", path("out.svg")}).exit_code, 0);
  const std::string svg = get("out.svg");
  EXPECT_EQ(svg.rfind("<svg", 0), 0u);
  EXPECT_NE(svg.find("</svg>\n"), std::string::npos);
  const std::size_t before = files();
  expect_refused(align({"--svg", path("nowhere/out.svg")}), "nowhere/out.svg");
  expect_refused(align({"--svg", folder_.string()}), "");
  expect_refused(align({"--svg", ""}), "without a name");
  const std::string sequence = get("r.fa");
  fs::create_hard_link(path("r.fa"), path("also_r.fa"));
  for (const std::string input : {"q.fa", "./r.fa", "also_r.fa"})
    expect_refused(align({"--svg", path(input)}), "is the input");
  fs::remove(path("also_r.fa"));
  EXPECT_EQ(get("r.fa"), sequence);
  expect_refused(align({"--svg", path("new.svg")}, "none.fa"), "none.fa");
  EXPECT_EQ(files(), before) << "nothing half-made is left";
  EXPECT_EQ(apps_test::run({"align", path("q.fa"), path("r.fa"), "--json"}, "/dev/full").exit_code,
            2);
}

TEST_F(program, what_was_found_is_told_though_the_picture_cannot_be_finished) {
  const outcome o = align({"--alignment", "--json", "--svg", "/dev/full"});
  EXPECT_EQ(o.exit_code, 2);
  EXPECT_EQ(o.err_lines(), 1) << o.err;
  EXPECT_EQ(o.err.rfind("align: /dev/full: cannot write", 0), 0u) << o.err;
  EXPECT_NE(o.out.find("score      3\n"), std::string::npos) << o.out;
  EXPECT_NE(o.out.find("query           2 GTT 4\n"), std::string::npos) << o.out;
  EXPECT_EQ(nlohmann::json::parse(o.last_line())["result"]["score"], 3);
}

TEST_F(program, a_hostile_header_harms_neither_json_nor_picture) {
  put("h.fa", ">a\"<script>&\xff\xfe\\ x<y>&\"\nACGTACGT\n");
  EXPECT_EQ(json_of(align({"--json", "--svg", path("h.svg"), "--explain"}, "h.fa",
                          "h.fa"))["result"]["score"],
            8);
  const std::string svg = get("h.svg");
  EXPECT_EQ(svg.find("<script>"), std::string::npos);
  EXPECT_EQ(svg.find('\xff'), std::string::npos);
}

TEST_F(program, plain_words) {
  std::mt19937 random(1);
  const std::string virus = seeded_letters(1, 20'000);
  put("v.fa", ">v Some phage, complete genome\n" + virus + "\n");
  put("b.fa", ">b A bacterium, complete genome\n" + seeded_letters(2, 30'000) +
                  mutated(virus.substr(1000, 15'000), random, 3) + seeded_letters(3, 30'000) +
                  "\n");
  const outcome o = align({"--explain", "--svg", path("w.svg")}, "v.fa", "b.fa");
  EXPECT_EQ(o.exit_code, 0);
  EXPECT_NE(o.out.find("prophage"), std::string::npos) << o.out;
  EXPECT_NE(o.out.find("Some phage"), std::string::npos) << o.out;
  put("n.fa", ">n\n" + seeded_letters(9, 3000) + "\n");
  EXPECT_NE(align({"--explain"}, "v.fa", "n.fa").out.find("Nothing was found"), std::string::npos);
}

// They match at any length, where gaps or mismatches are cheap, or so far that nothing can be told.
TEST_F(program, plain_words_claim_nothing_of_unrelated_sequences) {
  const auto put_letters = [&](std::size_t length) {
    put("a.fa", ">a Some phage, complete genome\n" + seeded_letters(21, length) + "\n");
    put("b.fa", ">b A bacterium, complete genome\n" + seeded_letters(22, length) + "\n");
  };
  put_letters(20'000);  // long enough for a prophage
  for (const std::vector<std::string>& costs : std::vector<std::vector<std::string>>{
           {"--gap", "1"},
           {"--match", "2", "--mismatch", "-1", "--gap", "2"},
           {"--match", "5", "--mismatch", "-2", "--gap", "3"},
           {"--match", "5", "--mismatch", "-4", "--gap-open", "8", "--gap-extend", "6"},
           {"--match", "2", "--mismatch", "-3", "--gap-open", "2", "--gap-extend", "1"},
           {"--match", "3", "--mismatch", "-1"},
           {"--match", "9998", "--mismatch", "-3333", "--gap", "5000"},
           {"--match", "4", "--mismatch", "-5", "--gap", "5"}}) {
    SCOPED_TRACE(testing::PrintToString(costs));
    std::vector<std::string> flags = costs;
    flags.insert(flags.end(), {"--explain", "--hits", "1"});
    const outcome o = align(flags, "a.fa", "b.fa");
    EXPECT_EQ(o.exit_code, 0) << o.err;
    for (const char* const claim : {"hardly ever", "prophage", "match lies", "remains", "-2,147"})
      EXPECT_EQ(o.out.find(claim), std::string::npos) << o.out;
    EXPECT_NE(o.out.find("says nothing"), std::string::npos) << o.out;
    put_letters(5'000);
  }
}

TEST_F(program, plain_words_tell_what_was_not_asked_for_from_what_is_not_there) {
  put("a.fa", ">a\n" + seeded_letters(21, 3000) + "\n");
  for (const std::vector<std::string>& flags :
       std::vector<std::vector<std::string>>{{"--hits", "0"}, {"--min-score", "100000"}}) {
    std::vector<std::string> all = flags;
    all.push_back("--explain");
    const outcome o = align(all, "a.fa", "a.fa");
    EXPECT_EQ(o.out.find("Nothing was found"), std::string::npos) << o.out;
    EXPECT_NE(o.out.find("asked for (" + flags[0] + " " + flags[1] + ")"), std::string::npos)
        << o.out;
    EXPECT_NE(o.out.find("the best score is 3,000"), std::string::npos) << o.out;
  }
  const outcome o = align({"--min-score", "50", "--explain"}, "a.fa", "a.fa");
  EXPECT_NE(o.out.find("Scores of 50 or more"), std::string::npos) << o.out;
}

}  // namespace
}  // namespace align_test
