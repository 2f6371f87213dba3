// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "apps/radixsort/keys.hpp"
#include "apps/radixsort/passes.hpp"

namespace radixsort {

struct repeated {
  double seconds = 0;  // median
  summary found;       // of the last sort
};

// Sorts what was drawn as often as was asked for, at least once. sort(passes&) returns the seconds
// that it took. Each result is looked at: one that is not the wanted is the last.
template <class Sort>
repeated repeat(unsigned repetitions, std::span<const key> drawn, std::span<key> keys,
                std::span<key> other, unsigned threads, unsigned radix_bits, const summary& wanted,
                Sort sort) {
  repeated r;
  std::vector<double> seconds;
  do {
    std::copy(drawn.begin(), drawn.end(), keys.begin());
    passes work(keys, other, threads, radix_bits);
    seconds.push_back(sort(work));
    r.found = summary_of(work.sorted());
  } while (r.found == wanted && seconds.size() < repetitions);
  std::nth_element(seconds.begin(), seconds.begin() + seconds.size() / 2, seconds.end());
  r.seconds = seconds[seconds.size() / 2];
  return r;
}

}  // namespace radixsort
