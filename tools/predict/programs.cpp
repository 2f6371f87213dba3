// SPDX-License-Identifier: Apache-2.0
#include "tools/predict/programs.hpp"

#include <charconv>

#include "apps/fib/fibers.hpp"
#include "apps/fib/serial.hpp"
#include "apps/nqueens/board.hpp"
#include "apps/nqueens/fibers.hpp"
#include "apps/uts/fibers.hpp"
#include "src/base/shortened.hpp"
#include "strata/error.hpp"

namespace strata::predict {
namespace {

unsigned number_in(const std::string& text, unsigned least, unsigned most) {
  unsigned value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size() || value < least || value > most) {
    throw user_error(strata::in_quotes(text) + " is not a whole number from " +
                     std::to_string(least) + " to " + std::to_string(most));
  }
  return value;
}

result compare(bool is_right) { return is_right ? result::right : result::wrong; }

// A threaded function that waits for the result of another.
struct fib_root : threaded {
  unsigned n;
  std::uint64_t known;
  result* found;
  std::uint64_t value;
  void start() { token<fib::activation>(n, to_global(&value), to_sptr(DONE)); }
  void done() {
    *found = compare(value == known);
    terminate();
  }
  fiber<&fib_root::done> DONE{this, 1};
};

struct nqueens_root : threaded {
  unsigned n;
  std::uint64_t known;
  result* found;
  std::uint64_t value;
  void start() {
    token<nqueens::placement>(n, 0U, n, nqueens::board{}, to_global(&value), to_sptr(DONE));
  }
  void done() {
    *found = compare(value == known);
    terminate();
  }
  fiber<&nqueens_root::done> DONE{this, 1};
};

struct uts_root : threaded {
  uts::parameters tree;
  uts::tally known;
  result* found;
  uts::tally counted;
  void start() { token<uts::visit>(tree, uts::root(tree), to_global(&counted), to_sptr(DONE)); }
  void done() {
    *found = compare(counted == known);
    terminate();
  }
  fiber<&uts_root::done> DONE{this, 1};
};

}  // namespace

program fib_program(unsigned n, std::uint64_t known) {
  return {"fib " + std::to_string(n),
          [n, known](result* found) { token<fib_root>(n, known, found); }};
}

program nqueens_program(unsigned n, std::uint64_t known) {
  return {"nqueens " + std::to_string(n),
          [n, known](result* found) { token<nqueens_root>(n, known, found); }};
}

program uts_program(const std::string& name, const uts::parameters& tree, const uts::tally& known) {
  return {"uts " + name, [=](result* found) { token<uts_root>(tree, known, found); }};
}

program find_program(const std::string& kind, const std::string& size) {
  if (kind == "fib") {
    const unsigned n = number_in(size, 1, 40);
    return fib_program(n, fib::closed_form(n));
  }
  if (kind == "nqueens") {
    const unsigned n = number_in(size, 1, 14);
    return nqueens_program(n, nqueens::known_solutions(n));
  }
  if (kind == "uts") {
    const uts::sample* const tree = uts::find_sample(size);
    if (tree == nullptr)
      throw user_error("there is no tree " + strata::in_quotes(size) + "; the choices are " +
                       uts::sample_names());
    return uts_program(size, tree->tree, tree->found);
  }
  throw user_error(strata::in_quotes(kind) +
                   " is not a program; the choices are fib, nqueens, uts");
}

}  // namespace strata::predict
