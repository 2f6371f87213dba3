// SPDX-License-Identifier: Apache-2.0
#include "apps/radixsort/request.hpp"

#include <algorithm>
#include <charconv>
#include <strata/error.hpp>
#include <system_error>
#include <vector>

#include "apps/radixsort/keys.hpp"
#include "src/base/shortened.hpp"

namespace radixsort {
namespace {

constexpr unsigned threads_max = 1 << 17;
constexpr unsigned repetitions_max = 1000;

// "8" or "1..10"
void parse_range(const std::string& text, request& r) {
  const auto number = [&](const std::string& part) {
    unsigned value = 0;
    const char* const end = part.data() + part.size();
    const auto parsed = std::from_chars(part.data(), end, value);
    if (parsed.ptr != end || parsed.ec != std::errc() || value < 1 || value > radix_bits_max) {
      throw strata::user_error("--radix-bits: " + strata::in_quotes(text) +
                               " is neither a number from 1 to 10 nor a range such as 1..10");
    }
    return value;
  };
  const std::size_t dots = text.find("..");
  r.radix_bits_first = number(text.substr(0, dots));
  r.radix_bits_last =
      dots == std::string::npos ? r.radix_bits_first : number(text.substr(dots + 2));
  if (r.radix_bits_first > r.radix_bits_last) {
    throw strata::user_error("--radix-bits: " + strata::in_quotes(text) + " ends before it begins");
  }
}

// An option that takes one of some words. Nothing is stored unless it is given.
void add_words(apps::command_line& cli, const std::string& flag,
               const std::vector<std::string>& words, const std::string& help,
               std::string& chosen) {
  std::string listed;
  for (const std::string& word : words) listed += (listed.empty() ? "" : ", ") + word;
  cli.add(
         flag,
         [=, &chosen](const std::string& text) {
           if (std::find(words.begin(), words.end(), text) == words.end()) {
             throw strata::user_error(flag + ": " + strata::in_quotes(text) +
                                      " is not one of: " + listed);
           }
           chosen = text;
         },
         help + " (" + listed + ")" + (chosen.empty() ? "" : " [" + chosen + "]"))
      .type_name("WORD");
}

// A policy that this version knows by name only is the user's to change, not a bug.
void set_policy(const std::string& policy, bool has_runtimes_flag, const request& r,
                strata::options& options) {
  if (policy.empty()) return;
  if (r.engine != "strata") {
    throw strata::user_error(
        "--policy: threads of the kernel have none; leave it out, or take --engine strata");
  }
  if (has_runtimes_flag) {
    throw strata::user_error(
        "--policy and --strata-policy say the same thing; leave one of them out");
  }
  options.policy = policy;
  try {
    options.validate();
  } catch (const strata::misuse_error& e) {
    throw strata::user_error(std::string("--policy: ") + e.what());
  }
}

}  // namespace

request parse_request(apps::program& p) {
  request r;
  std::string policy;
  apps::command_line& cli = p.cli();
  cli.add("N,--keys-log2", r.keys_log2, "2^N keys are sorted, 0 to 28 [22]")
      .type_name("N")
      .check(apps::whole_number(0, keys_log2_max, "2^28 keys are 1 GiB"));
  cli.add("--threads", r.threads, "threads that share the keys, 1 to 131072 [256]")
      .type_name("T")
      .check(apps::whole_number(1, threads_max, "their counts of 2^10 digits take 512 MiB"));
  cli.add(
         "--radix-bits", [&r](const std::string& text) { parse_range(text, r); },
         "bits of a digit, 1 to 10, or a range of them: 1..10 [8]")
      .type_name("B");
  add_words(cli, "--sync", {"barrier", "fork"},
            "how threads wait for each other; with fork they end, and new ones are made", r.sync);
  add_words(cli, "--engine", {"strata", "nptl"}, "whose threads they are", r.engine);
  add_words(cli, "--policy", {"steal", "rotator", "locked"},
            "how the runtime distributes threads, like --strata-policy", policy);
  cli.add("--repeat", r.repetitions, "sort so often; the median counts [1]")
      .type_name("R")
      .check(apps::whole_number(1, repetitions_max, "repetitions are limited"));
  const bool has_runtimes_policy = p.has_runtime_flag("--strata-policy");
  p.parse();
  set_policy(policy, has_runtimes_policy, r, p.runtime_options());
  if (r.engine != "strata")
    p.refuse_to_measure(
        "threads of the kernel have no runtime to measure; leave it out, or take --engine strata");
  return r;
}

}  // namespace radixsort
