// SPDX-License-Identifier: Apache-2.0
#include "apps/align/sequence.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <strata/error.hpp>

#include "apps/align/kernel.hpp"
#include "src/base/one_line.hpp"
#include "src/base/shortened.hpp"

namespace align {
namespace {

constexpr std::uint8_t refused = 255;
constexpr std::uint8_t skipped = 254;

constexpr std::array<std::uint8_t, 256> make_codes() {
  std::array<std::uint8_t, 256> codes{};
  codes.fill(refused);
  const auto both_cases = [&](char upper, std::uint8_t code) {
    codes[static_cast<unsigned char>(upper)] = code;
    codes[static_cast<unsigned char>(upper - 'A' + 'a')] = code;
  };
  both_cases('A', 0);
  both_cases('C', 1);
  both_cases('G', 2);
  both_cases('T', 3);
  both_cases('U', 3);
  for (const char c : {'N', 'R', 'Y', 'S', 'W', 'K', 'M', 'B', 'D', 'H', 'V'})
    both_cases(c, letter_ambiguous);
  for (const char c : {' ', '\t', '\r'}) codes[static_cast<unsigned char>(c)] = skipped;
  return codes;
}
constexpr std::array<std::uint8_t, 256> code_of = make_codes();

constexpr char upper_letter(char c) {
  if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return c == 'U' ? 'T' : c;
}

// The letter as a person can read it.
std::string show(char c) {
  char text[16];
  const auto byte = static_cast<unsigned char>(c);
  if (byte > ' ' && byte < 127)
    std::snprintf(text, sizeof text, "'%c'", c);
  else
    std::snprintf(text, sizeof text, "byte 0x%02x", byte);
  return text;
}

[[noreturn]] void fail(const std::string& file, std::size_t line, const std::string& what) {
  throw strata::user_error(file + ":" + std::to_string(line) + ": " + what);
}

// Appends a line's letters to `into` (nullptr: only checks them).
void add_letters(std::string_view text, sequence* into, const std::string& file, std::size_t line) {
  for (const char c : text) {
    const std::uint8_t code = code_of[static_cast<unsigned char>(c)];
    if (code == skipped) continue;
    if (code == refused) {
      fail(file, line,
           show(c) +
               " is no nucleotide; allowed are A C G T U and the IUPAC letters N R Y S W K M B D H "
               "V");
    }
    if (into) {
      into->letters.push_back(upper_letter(c));
      into->codes.push_back(code);
    }
  }
}

bool blank(std::string_view line) {
  return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

// A header is printed later: what of it is no text, or a command to the terminal, becomes '?'.
std::string shown(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = strata::shown_as_it_is(text);
    out += length == 0 ? "?" : text.substr(0, length);
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

// Returns the name as the file has it.
std::string_view split_header(std::string_view line, sequence& s) {
  line.remove_prefix(1);
  while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.remove_suffix(1);
  while (!line.empty() && line.front() == ' ') line.remove_prefix(1);
  const std::size_t end = std::min(line.find_first_of(" \t"), line.size());
  const std::string_view name = line.substr(0, end);
  line.remove_prefix(end);
  while (!line.empty() && (line.front() == ' ' || line.front() == '\t')) line.remove_prefix(1);
  s.name = shown(name);
  s.description = shown(line);
  return name;
}

}  // namespace

sequence make_sequence(std::string_view letters, std::string name) {
  sequence s;
  s.name = std::move(name);
  add_letters(letters, &s, s.name, 1);
  return s;
}

sequence reverse_complement(const sequence& s) {
  // Complements of A..Z; W, S and N are their own.
  static constexpr char pairs[] = "TVGHEFCDIJMLKNOPQYSAABWXRZ";
  sequence out;
  out.name = s.name;
  out.description = s.description;
  out.records_in_file = s.records_in_file;
  out.letters.reserve(s.size());
  out.codes.reserve(s.size());
  for (std::size_t i = s.size(); i-- > 0;) {
    out.letters.push_back(pairs[s.letters[i] - 'A']);
    out.codes.push_back(s.codes[i] < 4 ? static_cast<std::uint8_t>(3 - s.codes[i]) : s.codes[i]);
  }
  return out;
}

std::string_view without_byte_order_mark(std::string_view text) {
  constexpr std::string_view mark = "\xef\xbb\xbf";
  if (text.substr(0, mark.size()) == mark) text.remove_prefix(mark.size());
  return text;
}

sequence parse_fasta(std::string_view text, const std::string& file, std::string_view record) {
  text = without_byte_order_mark(text);
  sequence wanted;
  bool found = false;
  std::size_t records = 0, line_number = 0, header_line = 0;
  sequence* into = nullptr;
  while (!text.empty()) {
    ++line_number;
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (blank(line)) continue;
    if (line.front() == '>') {
      ++records;
      sequence header;
      const std::string_view name = split_header(line, header);
      into = nullptr;
      if (!found && (record.empty() || name == record || header.name == record)) {
        found = true;
        header_line = line_number;
        wanted = std::move(header);
        into = &wanted;
      }
      continue;
    }
    if (records == 0)
      fail(file, line_number,
           "not FASTA: the first line must start with '>' and name the sequence");
    add_letters(line, into, file, line_number);
  }
  if (records == 0)
    throw strata::user_error(file + ": the file is empty; a FASTA sequence was expected");
  if (!found) {
    throw strata::user_error(file + ": no record named " + strata::in_quotes(record) +
                             " among its " + std::to_string(records));
  }
  if (wanted.codes.empty()) {
    fail(file, header_line,
         "the record " + strata::in_quotes(wanted.name) + " has no letters; is the file complete?");
  }
  wanted.records_in_file = records;
  return wanted;
}

}  // namespace align
