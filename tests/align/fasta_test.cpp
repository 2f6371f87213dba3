// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <random>
#include <strata/error.hpp>

#include "apps/align/kernel.hpp"
#include "apps/align/sequence.hpp"

namespace align_test {
namespace {

using namespace align;

// The message of the error that parsing raises, or "" if it raises none.
std::string complaint(std::string_view text, std::string_view record = {}) {
  try {
    parse_fasta(text, "f.fa", record);
  } catch (const strata::user_error& e) {
    return e.what();
  }
  return "";
}

TEST(fasta, plain_record) {
  const sequence s = parse_fasta(">name some words\nACGT\nacgu\n", "f.fa");
  EXPECT_EQ(s.name, "name");
  EXPECT_EQ(s.description, "some words");
  EXPECT_EQ(s.letters, "ACGTACGT");
  EXPECT_EQ(s.codes, (std::vector<std::uint8_t>{0, 1, 2, 3, 0, 1, 2, 3}));
  EXPECT_EQ(s.records_in_file, 1u);
}

TEST(fasta, line_endings_blanks_and_a_missing_last_newline) {
  EXPECT_EQ(parse_fasta("\n\r\n>a\r\nAC\r\n\r\n GT\t\r\nA", "f.fa").letters, "ACGTA");
  EXPECT_EQ(parse_fasta(">a\r\nA\r\n", "f.fa").name, "a");
  EXPECT_EQ(parse_fasta("> a b\nA\n", "f.fa").name, "a");
}

TEST(fasta, a_byte_order_mark_is_skipped_where_the_text_begins) {
  EXPECT_EQ(parse_fasta("\xef\xbb\xbf>a\nAC\n", "f.fa").name, "a");
  EXPECT_NE(complaint("\xef\xbb\xbf").find("empty"), std::string::npos);
  EXPECT_NE(complaint("\xef\xbb>a\nAC\n").find("not FASTA"), std::string::npos);
  EXPECT_NE(complaint(">a\n\xef\xbb\xbf>b\nAC\n").find("0xef"), std::string::npos);
}

TEST(fasta, ambiguity_letters_are_kept_and_match_nothing) {
  const sequence s = parse_fasta(">a\nNRYSWKMBDHVn\n", "f.fa");
  EXPECT_EQ(s.letters, "NRYSWKMBDHVN");
  for (const std::uint8_t code : s.codes) EXPECT_EQ(code, letter_ambiguous);
}

TEST(fasta, several_records) {
  const char* text = ">a\nAC\n>b x\nGG\n>c\nTT\n";
  EXPECT_EQ(parse_fasta(text, "f.fa").letters, "AC");
  EXPECT_EQ(parse_fasta(text, "f.fa").records_in_file, 3u);
  EXPECT_EQ(parse_fasta(text, "f.fa", "b").letters, "GG");
  EXPECT_EQ(complaint(text, "d"), "f.fa: no record named 'd' among its 3");
}

TEST(fasta, complaints_say_where) {
  EXPECT_NE(complaint("").find("f.fa: the file is empty"), std::string::npos);
  EXPECT_NE(complaint("\n \n").find("empty"), std::string::npos);
  EXPECT_NE(complaint("ACGT\n").find("f.fa:1: not FASTA"), std::string::npos);
  EXPECT_NE(complaint("@read\nACGT\n+\nIIII\n").find("f.fa:1: not FASTA"), std::string::npos);
  EXPECT_NE(complaint(">a\nACGT\nAXGT\n").find("f.fa:3: 'X' is no nucleotide"), std::string::npos);
  EXPECT_NE(complaint(">a\nAC-GT\n").find("'-'"), std::string::npos);
  EXPECT_NE(complaint(std::string_view(">a\nAC\0GT\n", 9)).find("byte 0x00"), std::string::npos);
  EXPECT_NE(complaint(">a\n\n").find("f.fa:1: the record 'a' has no letters"), std::string::npos);
  EXPECT_NE(complaint(">a").find("no letters"), std::string::npos);
  EXPECT_NE(complaint(">a\n>b\nACGT\n").find("no letters"), std::string::npos);
  EXPECT_NE(complaint(">a\nACGT\n>b\nACQT\n").find("f.fa:4"), std::string::npos)
      << "records not taken are checked too";
}

TEST(fasta, control_characters_in_headers_reach_no_terminal) {
  EXPECT_EQ(parse_fasta(">a\x1b[31m x\x07\nA\n", "f.fa").name, "a?[31m");
  // Those beyond ASCII: as UTF-8, and as one byte; letters beyond it stay.
  const char* const text =
      ">gr\xC3\xBCn\xC2\x9B"
      "31m \x9B"
      "2J\xE9 \xE2\x82\xAC\nA\n";
  const sequence s = parse_fasta(text, "f.fa");
  EXPECT_EQ(s.name, "gr\xC3\xBCn??31m");
  EXPECT_EQ(s.description, "?2J? \xE2\x82\xAC");
  // Whichever way a record is named.
  EXPECT_EQ(parse_fasta(text, "f.fa", s.name).name, s.name);
  EXPECT_EQ(parse_fasta(text, "f.fa",
                        "gr\xC3\xBCn\xC2\x9B"
                        "31m")
                .name,
            s.name);
}

TEST(fasta, reverse_complement_twice_is_the_same) {
  const sequence s = make_sequence("ACGTRYSWKMBDHVNU");
  const sequence r = reverse_complement(s);
  EXPECT_EQ(r.letters, "ANBDHVKMWSRYACGT");
  EXPECT_EQ(reverse_complement(r).letters, s.letters);
  EXPECT_EQ(reverse_complement(r).codes, s.codes);
  EXPECT_EQ(make_sequence(r.letters).codes, r.codes);
}

// The fuzzer's little sister, which runs everywhere: damaged files are either understood or
// complained about in one line.
TEST(fasta, damaged_files) {
  std::mt19937 random(77);
  const std::string good = ">gi|1 Escherichia\nACGTACGTNNRY\nacgtuu\r\n\r\n>second\nGGGG\n";
  for (int round = 0; round < 20'000; ++round) {
    std::string text = good;
    for (unsigned k = random() % 6; k-- > 0 && !text.empty();) {
      const std::size_t at = random() % text.size();
      switch (random() % 4) {
        case 0:
          text[at] = static_cast<char>(random());
          break;
        case 1:
          text.erase(at, random() % 8);
          break;
        case 2:
          text.insert(at, 1, ">\n\r\0 A"[random() % 6]);
          break;
        default:
          text.resize(at);
          break;
      }
    }
    try {
      const sequence s = parse_fasta(text, "f.fa");
      ASSERT_EQ(s.letters.size(), s.codes.size());
      ASSERT_FALSE(s.codes.empty());
      ASSERT_GE(s.records_in_file, 1u);
    } catch (const strata::user_error& e) {
      ASSERT_EQ(std::string(e.what()).find('\n'), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace align_test
