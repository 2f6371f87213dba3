// SPDX-License-Identifier: Apache-2.0
#include "strata/error.hpp"

#include <utility>

#include "strata/detail/check.hpp"

namespace strata {
namespace {

std::string words_of(const std::string& type_name, const std::string& message,
                     const std::vector<std::uint16_t>& trace, std::size_t hops) {
  STRATA_CHECK(!trace.empty());
  STRATA_CHECK(trace.size() <= hops, trace.size(), hops);
  std::string words = type_name + " on node " + std::to_string(trace.front());
  if (!message.empty()) words += ": " + message;
  if (hops == 1) return words;
  for (std::size_t i = 1; i < trace.size(); ++i)
    words += (i == 1 ? " (by way of node " : ", node ") + std::to_string(trace[i]);
  if (hops != trace.size()) words += " and " + std::to_string(hops - trace.size()) + " more";
  return words + ")";
}

}  // namespace

remote_error::remote_error(std::string type_name, std::string message,
                           std::vector<std::uint16_t> trace, std::size_t hops)
    : error(words_of(type_name, message, trace, hops)),
      origin_(std::make_shared<const origin>(
          origin{std::move(type_name), std::move(message), std::move(trace), hops})) {}

}  // namespace strata
