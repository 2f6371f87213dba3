#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <optional>
#include <strata/grid.hpp>
#include <strata/group.hpp>
#include <strata/runtime.hpp>
#include <vector>
constexpr unsigned cells = 40;  // of the plate, along each edge

// Where it begins in a member's array, and who is beside it.
struct side {
  unsigned edge, frame, stride, count;
  std::optional<unsigned> beside{};  // nobody at the plate's own edges
  std::vector<double> out{}, in{};
};

int heat(strata::group& all, double limit) {
  strata::endpoint& mine = strata::this_thread::endpoint();
  const auto blocks = strata::grid::balanced(all.size(), 2);  // 4 x 2 of 8 members
  const auto here = blocks.coordinates(all.rank());
  const auto begin = [&](unsigned d, unsigned block) { return cells * block / blocks.extent[d]; };
  const unsigned rows = begin(0, here[0] + 1) - begin(0, here[0]);
  const unsigned columns = begin(1, here[1] + 1) - begin(1, here[1]);
  // This member's cells, in a frame of what lies beside them. Above the plate it is hot.
  const unsigned wide = columns + 2;
  std::vector<double> now((rows + 2) * wide);
  if (here[0] == 0) std::fill_n(now.begin(), wide, 1.0);
  std::vector<double> next = now;
  std::array<side, 4> sides{{{wide + 1, 1, 1, columns},  // up, down, left, right
                             {rows * wide + 1, (rows + 1) * wide + 1, 1, columns},
                             {wide + 1, wide, wide, rows},
                             {wide + columns, wide + columns + 1, wide, rows}}};
  for (unsigned s = 0; s < 4; ++s) {
    sides[s].beside = blocks.shift(all.rank(), s / 2, s % 2 == 0 ? -1 : 1);
    sides[s].out.resize(sides[s].count);
    sides[s].in.resize(sides[s].count);
  }
  for (int steps = 1;; ++steps) {
    std::vector<strata::transfer> transfers;
    for (unsigned s = 0; s < 4; ++s) {
      side& a = sides[s];
      if (!a.beside) continue;
      const strata::endpoint_id other = all.members()[*a.beside];
      transfers.push_back(mine.start_receive(a.in, other, s ^ 1));  // who is above sends down
      for (unsigned i = 0; i < a.count; ++i) a.out[i] = now[a.edge + i * a.stride];
      transfers.push_back(mine.start_send(other, s, a.out));
    }
    strata::wait_all(transfers);
    for (const side& a : sides) {
      for (unsigned i = 0; a.beside && i < a.count; ++i) now[a.frame + i * a.stride] = a.in[i];
    }
    double change = 0;
    for (unsigned r = 1; r <= rows; ++r) {
      for (unsigned i = r * wide + 1; i <= r * wide + columns; ++i) {
        next[i] = (now[i - wide] + now[i + wide] + now[i - 1] + now[i + 1]) / 4;
        change = std::max(change, std::abs(next[i] - now[i]));
      }
    }
    now.swap(next);
    if (all.all_reduce(change, [](double a, double b) { return std::max(a, b); }) <= limit)
      return steps;
  }
}

void store(strata::global_ptr<int> where, int value) { *where.local() = value; }

int main(int argc, char** argv) {
  strata::runtime runtime(argc, argv);
  runtime.run([] {
    int steps = 0;
    const auto work = [](strata::group& all, double limit, strata::global_ptr<int> result) {
      const int taken = heat(all, limit);
      if (all.rank() == 0) strata::call<store>(strata::on_node{result.node()}, result, taken);
    };
    strata::run_group(2, work, 1e-4, strata::to_global(&steps));
    std::printf("%d steps\n", steps);
  });
}
