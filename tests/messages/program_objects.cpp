// SPDX-License-Identifier: Apache-2.0
#include "program_objects.hpp"

#include <array>
#include <atomic>
#include <cereal/types/map.hpp>
#include <cereal/types/string.hpp>
#include <cereal/types/vector.hpp>
#include <cstdio>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "../common/require.hpp"
#include "program_support.hpp"
#include "strata/remote_thread.hpp"
#include "strata/resource.hpp"
#include "strata/serialize.hpp"
#include "strata/shared_task.hpp"
#include "strata/thread.hpp"

using namespace strata;
using test::die;
using test::last_node;
using test::require;

namespace {

struct hit {
  std::string name;
  double score = 0;
  template <class Archive>
  void serialize(Archive& a) {
    a(name, score);
  }
  friend bool operator==(const hit&, const hit&) = default;
};

std::vector<hit> search(const std::string& query, int k) {
  std::vector<hit> found;
  for (int i = 0; i < k; ++i) found.push_back({query + std::to_string(i), i / 2.0});
  return found;
}

std::string text_of(std::size_t n, unsigned seed) {
  std::string s(n, ' ');
  for (std::size_t i = 0; i < n; ++i) s[i] = static_cast<char>(seed + i * 7 + (i >> 12));
  return s;
}
std::string twice(const std::string& s) { return s + s; }
std::size_t length(const std::string& s) { return s.size(); }
std::vector<std::string> words_of(const std::map<std::string, int>& known) {
  std::vector<std::string> words;
  for (const auto& [word, n] : known) words.insert(words.end(), static_cast<std::size_t>(n), word);
  return words;
}
std::string refuses(const std::string& s) { throw std::out_of_range(s); }

// Plain, and too large to travel within a call.
using table = std::array<double, 5000>;
double sum_of(const table& t) {
  double sum = 0;
  for (const double x : t) sum += x;
  return sum;
}
table squares(int from) {
  table t;
  for (std::size_t i = 0; i < t.size(); ++i) t[i] = (from + static_cast<double>(i)) * from;
  return t;
}

std::atomic<std::size_t> bytes_here{0};
void add_length(const std::string& s) { bytes_here += s.size(); }
std::size_t length_here() { return bytes_here; }

struct notes {
  std::string all;
  std::string add(const std::string& more) { return all += more; }
};

// Around what a call carries, and what travels as a message of its own.
constexpr std::array<std::size_t, 8> sizes{0,      64,        16'376,    16'377,
                                           65'536, 1'000'000, 4'194'304, 9'000'000};

void call_with_all_sizes(on_node there) {
  for (const std::size_t n : sizes) {
    const std::string s = text_of(n, there.number);
    require(call<length>(there, s) == n, "the length of " + std::to_string(n));
    require(call<twice>(there, s) == s + s, "twice " + std::to_string(n));
  }
}

}  // namespace

void object_calls(runtime& rt) {
  rt.run([] {
    for (unsigned n = 0; n < num_nodes(); ++n) {
      const on_node there{n};
      require(call<search>(there, std::string("ACGT"), 3) == search("ACGT", 3), "what was found");
      require(call<search>(n, std::string("ACGT"), 0).empty(), "nothing was found");
      require(call<words_of>(there, std::map<std::string, int>{{"a", 2}, {"b", 1}}) ==
                  std::vector<std::string>{"a", "a", "b"},
              "words");
      require(call<squares>(there, 3) == squares(3), "a large plain result");
      require(call<sum_of>(there, squares(3)) == sum_of(squares(3)), "a large plain argument");
      call_with_all_sizes(there);
      for (const std::size_t bytes : {std::size_t{5}, std::size_t{100'000}}) {
        const std::string s = text_of(bytes, 1);
        bytes_here = 0;
        call<[] { bytes_here = 0; }>(there);
        remote_thread(there, call<add_length>(s)).join();
        remote_thread(
            there, [](const std::string& t) { add_length(t); }, s)
            .join();
        shared_task(there, call<add_length>(s)).join();
        remote_thread(there, call<twice>(s)).join();
        require(call<length_here>(there) == 3 * bytes, "threads and tasks");
        try {
          (void)call<refuses>(there, s);
          require(false, "an exception");
        } catch (const remote_error& e) {
          require(e.node() == n && e.type_name() == "std::out_of_range", e.what());
        } catch (const std::out_of_range&) {
          require(n == node_id(), "which exception");
        }
      }
    }
    named<notes> book("book");
    on_every_node(
        [](const std::string& s) {
          auto found = resource<notes>::await("book");
          require(found.call<&notes::add>(s).size() >= s.size(), "notes");
        },
        text_of(70'000, 2));
    require(book->all.size() == 70'000U * num_nodes(), "everybody's notes");
    // Many at once, both ways.
    on_every_node([] {
      std::vector<thread> callers;
      for (unsigned i = 0; i < 8; ++i) {
        callers.emplace_back([i] {
          const std::string s = text_of(300'000, i);
          for (unsigned n = 0; n < num_nodes(); ++n)
            require(call<twice>(on_node{n}, s) == s + s, "one of many");
        });
      }
      for (thread& t : callers) t.join();
    });
  });
}

// Arguments and results are under way, to there and from there, when the last node dies.
void lost_with_objects(runtime& rt) {
  try {
    rt.run([] {
      std::vector<thread> callers;
      std::atomic<unsigned> made{0}, told{0};
      const std::string large = text_of(3'000'000, 1);
      remote_thread there(on_node{last_node()}, [] {
        const std::string s = text_of(3'000'000, 2);
        for (;;) (void)call<twice>(on_node{0}, s);
      });
      for (unsigned i = 0; i < 4; ++i) {
        callers.emplace_back([&, i] {
          try {
            for (;; ++made) {
              if (i % 2 == 0) {
                require(call<length>(on_node{last_node()}, large) == large.size(), "an argument");
              } else {
                (void)call<text_of>(on_node{last_node()}, std::size_t{3'000'000}, i);
              }
            }
          } catch (const node_lost_error& e) {
            require(e.node() == last_node(), "who is lost");
            ++told;
          }
        });
      }
      while (made < 20) this_thread::yield();
      remote_thread(on_node{last_node()}, call<die>()).detach();
      for (thread& t : callers) t.join();
      require(told == 4, "everybody is told");
      std::puts("told");
      there.join();
    });
  } catch (const node_lost_error&) {
  }
}
