// SPDX-License-Identifier: Apache-2.0
// What the members of a group under test have: the same on every member, without anybody telling.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace strata::test {

inline std::uint64_t datum(std::uint64_t rank, std::uint64_t i) {
  std::uint64_t x = rank * 0x9E37'79B9'7F4A'7C15U + i * 0xBF58'476D'1CE4'E5B9U + 1;
  x ^= x >> 31;
  x *= 0x94D0'49BB'1331'11EBU;
  return x ^ (x >> 29);
}
inline std::vector<std::uint64_t> data(std::uint64_t rank, std::size_t n) {
  std::vector<std::uint64_t> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = datum(rank, i);
  return v;
}
// Of all ranks, one after the other.
inline std::vector<std::uint64_t> data_of_all(unsigned members, std::size_t n) {
  std::vector<std::uint64_t> v;
  for (unsigned r = 0; r < members; ++r) {
    const auto theirs = data(r, n);
    v.insert(v.end(), theirs.begin(), theirs.end());
  }
  return v;
}

// For reductions: T's multiplication is associative and not commutative, T{} is its one, and
// T::of(rank, i) is made of data.
template <class T>
std::vector<T> factors(unsigned rank, std::size_t n) {
  std::vector<T> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = T::of(rank, i);
  return v;
}
// The product of ranks [0, last), element by element.
template <class T>
std::vector<T> product(unsigned last, std::size_t n) {
  std::vector<T> v(n);
  for (unsigned r = 0; r < last; ++r) {
    for (std::size_t i = 0; i < n; ++i) v[i] = v[i] * T::of(r, i);
  }
  return v;
}

}  // namespace strata::test
