// SPDX-License-Identifier: Apache-2.0
#include "program_objects.hpp"

#include <array>
#include <atomic>
#include <cereal/types/map.hpp>
#include <cereal/types/string.hpp>
#include <cereal/types/vector.hpp>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "../common/require.hpp"
#include "../common/unreadable.hpp"
#include "program_support.hpp"
#include "strata/call.hpp"
#include "strata/fiber.hpp"
#include "strata/fork_join.hpp"
#include "strata/remote_thread.hpp"
#include "strata/resource.hpp"
#include "strata/serialize.hpp"
#include "strata/shared_task.hpp"
#include "strata/thread.hpp"

using namespace strata;
using test::die;
using test::last_node;
using test::require;
using test::unreadable;

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

namespace {

using findings = std::map<int, std::vector<hit>>;
// On the node where they are.
std::atomic<unsigned> searches_here{0};

// Each half of it may be made by another node. `text` is as long as it has to be.
findings search_all(int first, int last, const std::string& text) {
  if (last - first == 1) {
    ++searches_here;
    volatile int busy = 0;
    for (int i = 0; i < 50'000; ++i) busy = busy + 1;
    return {{first, search(text, 2)}};
  }
  const int middle = first + (last - first) / 2;
  auto [left, right] = fork2join([&] { return search_all(first, middle, text); },
                                 call<search_all>(middle, last, text));
  left.merge(right);
  return std::move(left);
}
unsigned searches_made_here() { return searches_here; }

struct counts_hits : threaded {
  std::vector<hit> hits;
  std::string text;
  global_ptr<std::uint64_t> sum;
  slot_ptr done;
  void start() {
    ++searches_here;
    volatile int busy = 0;
    for (int i = 0; i < 20'000; ++i) busy = busy + 1;
    std::uint64_t n = text.size();
    for (const hit& h : hits) n += h.name.size();
    put_sync(n, sum, done);
    terminate();
  }
};

struct takes_unreadable : threaded {
  unreadable argument;
  slot_ptr done;
  void start() {
    sync(done);
    terminate();
  }
};

// How many were made on other nodes so far.
unsigned elsewhere() {
  unsigned n = 0;
  for (node_id_t other = 1; other < num_nodes(); ++other)
    n += call<searches_made_here>(on_node{other});
  return n;
}

}  // namespace

// Until some have been made elsewhere, of each size.
void object_forks(runtime& rt) {
  rt.run([] {
    for (const std::size_t bytes : {std::size_t{30}, std::size_t{5'000}, std::size_t{40'000}}) {
      constexpr int leaves = 32;
      const std::string text = text_of(bytes, 3);
      findings all;
      for (int n = 0; n < leaves; ++n) all[n] = search(text, 2);
      const unsigned before = elsewhere();
      do {
        require(search_all(0, leaves, text) == all, "what was found");
      } while (num_nodes() > 1 && elsewhere() == before);
    }
  });
}

void object_tokens(runtime& rt) {
  rt.run([] {
    for (const std::size_t bytes : {std::size_t{30}, std::size_t{5'000}, std::size_t{40'000}}) {
      constexpr std::uint32_t tokens = 64;
      const unsigned before = elsewhere();
      do {
        std::vector<std::uint64_t> sums(tokens);
        completion done(tokens);
        for (std::uint32_t i = 0; i < tokens; ++i) {
          token<counts_hits>(search("ACGT", static_cast<int>(i % 4)), text_of(bytes, i),
                             to_global(&sums[i]), done.sptr());
        }
        done.wait();
        for (std::uint32_t i = 0; i < tokens; ++i)
          require(sums[i] == bytes + std::uint64_t{5} * (i % 4), "a sum");
      } while (num_nodes() > 1 && elsewhere() == before);
    }
  });
}

// Nobody waits for a token, so the computation fails.
void tokens_not_read(runtime& rt) {
  const bool is_alone = rt.run([] { return num_nodes() == 1; });
  for (const std::size_t bytes : {std::size_t{30}, std::size_t{40'000}}) {
    try {
      rt.run([bytes] {
        completion done;
        invoke<takes_unreadable>(last_node(), unreadable{text_of(bytes, 1)}, done.sptr());
        done.wait();
      });
      require(is_alone, "it has been read");
    } catch (const remote_error& e) {
      require(e.type_name() == "strata::serialization_error", e.what());
    }
  }
}

// Branches and their results are under way when the last node dies.
void lost_with_forks(runtime& rt) {
  try {
    rt.run([] {
      const std::string large = text_of(300'000, 1);
      bool told = false;
      try {
        for (unsigned before = elsewhere();;) {
          (void)search_all(0, 32, large);
          if (before != UINT_MAX && elsewhere() != before) {
            before = UINT_MAX;
            remote_thread(on_node{last_node()}, call<die>()).detach();
          }
        }
      } catch (const node_lost_error& e) {
        require(e.node() == last_node(), "who is lost");
        told = true;
      }
      require(told, "it is told");
      std::puts("told");
    });
  } catch (const node_lost_error&) {
  }
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
