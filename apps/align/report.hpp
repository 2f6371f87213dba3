// SPDX-License-Identifier: Apache-2.0
// What the program prints, draws and writes.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "apps/align/comparison.hpp"

namespace align {

struct report_input {
  const sequence& query;
  const sequence& ref;
  const comparison_options& options;
  const comparison& result;
  std::int32_t chance = 0;  ///< see chance_score(); for plain_words()
  std::string kernels;
};

/// Score, begin, end, identity and the table of hits.
std::string text_report(const report_input& in);

/// What was found, in the words of a biologist.
std::string plain_words(const report_input& in);

/// The alignment letter by letter, 60 columns a line.
std::string alignment_text(const report_input& in, const finding& f);

/// The members `parameters` and `result` of the JSON object.
nlohmann::json json_parameters(const report_input& in);
nlohmann::json json_result(const report_input& in);

/// Where the hits lie along both sequences: the whole reference, and the richest region of it with
/// ribbons to the query.
std::string svg_picture(const report_input& in);

}  // namespace align
