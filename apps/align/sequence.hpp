// SPDX-License-Identifier: Apache-2.0
// Nucleotide sequences and the FASTA files they come in.
//
// Letters: A, C, G, T in either case; U counts as T. The IUPAC ambiguity letters (N R Y S W K M B D
// H V) are accepted and match nothing, not even themselves: an unknown base is no evidence. Spaces
// and tabs are skipped. Everything else is refused.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace align {

struct sequence {
  std::string name;                 ///< first word of the header, as a terminal can show it
  std::string description;          ///< the rest of the header, likewise
  std::string letters;              ///< upper case, U as T
  std::vector<std::uint8_t> codes;  ///< A C G T = 0..3, anything else letter_ambiguous
  std::size_t records_in_file = 1;

  [[nodiscard]] std::size_t size() const { return codes.size(); }
};

/// A sequence from letters alone, for tests and examples. Throws strata::user_error for letters
/// that are none.
sequence make_sequence(std::string_view letters, std::string name = "sequence");

/// The other strand, read in its own direction.
sequence reverse_complement(const sequence& s);

/// Editors of some systems begin a text in UTF-8 with three bytes that say so.
[[nodiscard]] std::string_view without_byte_order_mark(std::string_view text);

/// Parses FASTA text, with a byte-order mark or without. `record`: the name of the record wanted
/// (the first word after '>', as the file has it or as `name` shows it); empty takes the first one.
/// All records are checked. `file` appears in messages. Throws strata::user_error with file, line
/// and what to do.
sequence parse_fasta(std::string_view text, const std::string& file, std::string_view record = {});

/// Reads a FASTA file, plain or gzip. Throws strata::user_error.
sequence read_fasta(const std::string& path, std::string_view record = {});

}  // namespace align
