// SPDX-License-Identifier: Apache-2.0
// What members of a group are told when they disagree, leave, fail, or are used wrongly.
#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "group_support.hpp"
#include "sched/scheduler.hpp"
#include "strata/fiber.hpp"
#include "strata/semaphore.hpp"

namespace strata::test {
namespace {

// What each member's call of f throws: its rank's text, or "fine".
template <class F>
std::vector<std::string> outcomes(unsigned n, F&& f) {
  std::vector<std::string> all(n);
  with_endpoints(n, [&](unsigned rank, endpoint& own, const std::vector<endpoint_id>& list) {
    std::string& mine = all[rank];
    try {
      group g(own, list);
      f(g);
      mine = "fine";
    } catch (const group_error& e) {
      mine = std::string("disagree: ") + e.what();
    } catch (const member_left_error& e) {
      EXPECT_LT(e.member(), n);
      EXPECT_EQ(e.which(), list[e.member()]);
      mine = std::string("left: ") + e.what();
    } catch (const std::exception& e) {
      mine = e.what();
    }
  });
  return all;
}

TEST_P(groups, tell_of_sizes_that_do_not_fit) {
  run([] {
    for (const unsigned n : {2U, 3U, 8U, 13U}) {
      for (unsigned odd = 0; odd < n; ++odd) {
        // Everybody gets to know, some of them from others.
        const auto all = outcomes(n, [&](group& g) {
          std::vector<int> v(g.rank() == odd ? 3 : 2);
          for (int i = 0; i < 3; ++i) g.all_reduce(v, std::plus<>());
        });
        for (const std::string& what : all) EXPECT_NE(what, "fine");
        EXPECT_TRUE(std::any_of(all.begin(), all.end(), [](const std::string& what) {
          return what.starts_with("disagree: members of a group disagree: member ");
        }));
        // In large messages, which nobody has received when the disagreement is found.
        for (const std::string& what : outcomes(n, [&](group& g) {
               std::vector<std::byte> v(g.rank() == odd ? 300'000 : 200'000);
               g.broadcast(v, 0);
               g.barrier();
             }))
          EXPECT_NE(what, "fine");
      }
    }
  });
}

TEST_P(groups, tell_of_a_member_that_leaves_while_they_split_or_afterwards) {
  run([] {
    for (const unsigned n : {2U, 6U, 9U}) {
      for (unsigned odd = 0; odd < n; ++odd) {
        for (const std::string& what : outcomes(n, [&](group& g) {
               if (g.rank() == odd) throw std::runtime_error("fails");
               (void)g.split(0, 0);
             }))
          EXPECT_NE(what, "fine");
        // In the part that it is in, where the other part goes on.
        latch all_have_split(n);
        const auto all = outcomes(n, [&](group& g) {
          std::optional<group> part = g.split(g.rank() % 2);
          all_have_split.arrive_and_wait();
          if (g.rank() == odd) throw std::runtime_error("fails");
          try {
            for (int i = 0; i < 3; ++i) part->barrier();
          } catch (const member_left_error& e) {
            EXPECT_EQ(e.member(), odd / 2);
            EXPECT_EQ(e.which(), part->members()[odd / 2]);
            throw std::runtime_error("is told");
          }
        });
        for (unsigned i = 0; i < n; ++i)
          EXPECT_EQ(all[i], i == odd ? "fails" : i % 2 == odd % 2 ? "is told" : "fine");
        for (const std::string& what : outcomes(n, [&](group& g) {
               if (g.rank() == odd) {
                 (void)g.all_gather(1);
               } else {
                 (void)g.split(0);
               }
             }))
          EXPECT_NE(what, "fine");
      }
    }
  });
}

TEST_P(groups, tell_of_different_operations) {
  run([] {
    const auto all = outcomes(4, [](group& g) {
      if (g.rank() == 2) {
        (void)g.all_reduce(1, std::plus<>());
      } else {
        g.barrier();
      }
      g.barrier();
    });
    for (const std::string& what : all) EXPECT_NE(what, "fine");
    EXPECT_TRUE(std::any_of(all.begin(), all.end(), [](const std::string& what) {
      return what.find("barrier (operation 1") != std::string::npos &&
             what.find("all_reduce (operation 1") != std::string::npos;
    })) << all[0];
    for (const std::string& what : outcomes(3, [](group& g) {
           (void)g.broadcast(g.rank(), g.rank() == 1 ? 1 : 0);
           g.barrier();
         }))
      EXPECT_NE(what, "fine");
  });
}

TEST_P(groups, tell_of_values_of_any_number_that_are_of_another_type) {
  run([] {
    for (const unsigned n : {2U, 5U}) {
      const auto expect_told = [&](const std::vector<std::string>& all) {
        for (const std::string& what : all) EXPECT_NE(what, "fine");
        EXPECT_TRUE(std::any_of(all.begin(), all.end(), [](const std::string& what) {
          return what.find("members give values of different types") != std::string::npos;
        }));
      };
      const std::vector<int> three(3);
      const std::vector<double> two(2);
      expect_told(outcomes(n, [&](group& g) {
        if (g.rank() == 1) {
          (void)g.all_gather_any(two);
          (void)g.all_gather_any(two);
        } else {
          (void)g.all_gather_any(three);
          (void)g.all_gather_any(three);
        }
      }));
      expect_told(outcomes(n, [&](group& g) {
        if (g.rank() == 0) {
          (void)g.scatter_any(std::vector(n, three), 0);
        } else {
          (void)g.scatter_any(std::vector(n, two), 0);
        }
        g.barrier();
      }));
      for (const std::string& what : outcomes(n, [&](group& g) {
             (void)g.all_to_all_any(std::vector(g.rank() == 1 ? n - 1 : n, three));
             g.barrier();
           }))
        EXPECT_NE(what, "fine");
      for (const std::string& what : outcomes(n, [&](group& g) {
             (void)g.scatter_any(std::vector(n + 1, three), 1);
             g.barrier();
           }))
        EXPECT_NE(what, "fine");
    }
  });
}

TEST_P(groups, tell_of_ranges_of_one_member_that_do_not_fit) {
  run([] {
    for (const unsigned n : {1U, 2U, 3U, 6U}) {
      const auto expect_told = [&](const char* why, auto&& operation) {
        const auto all = outcomes(n, [&](group& g) {
          operation(g, g.rank() == n - 1 ? std::size_t{3} : std::size_t{2});
          g.barrier();
        });
        for (const std::string& what : all) EXPECT_NE(what, "fine");
        EXPECT_NE(all[n - 1].find(why), std::string::npos) << all[n - 1];
      };
      expect_told("reduce_scatter(): `all` is not N times", [n](group& g, std::size_t size) {
        std::vector<int> mine(size);
        g.reduce_scatter(std::vector<int>(std::size_t{2} * n), mine, std::plus<>());
      });
      expect_told("exclusive_scan(): `result` is not as large", [](group& g, std::size_t size) {
        std::vector<int> result(size);
        g.exclusive_scan(std::vector<int>(2), result, std::plus<>());
      });
    }
  });
}

TEST_P(groups, tell_of_a_member_that_leaves) {
  run([] {
    for (const unsigned n : {2U, 5U, 9U}) {
      const auto all = outcomes(n, [&](group& g) {
        g.barrier();
        if (g.rank() == 1) throw std::out_of_range("a member's own trouble");
        for (;;) g.barrier();
      });
      for (unsigned r = 0; r < n; ++r) {
        if (r == 1) {
          EXPECT_EQ(all[r], "a member's own trouble");
        } else {
          EXPECT_TRUE(all[r].starts_with("left: member 1 has left: ")) << all[r];
        }
      }
    }
    const auto all = outcomes(6, [](group& g) {
      if (g.rank() == 4) {
        g.leave("enough");
        EXPECT_THROW(g.barrier(), member_left_error);
        EXPECT_THROW(g.barrier(), member_left_error);
        return;
      }
      const std::vector<std::byte> mine(100'000);
      std::vector<std::byte> everybody(600'000);
      for (;;) g.all_gather(mine, everybody);
    });
    for (unsigned r = 0; r < 6; ++r)
      EXPECT_EQ(all[r], r == 4 ? "fine" : "left: member 4 has left: enough");
  });
}

TEST_P(groups, pass_on_what_an_operation_throws) {
  run([] {
    const auto all = outcomes(7, [](group& g) {
      std::vector<int> v(10'000, 1);
      g.all_reduce(v, [](int a, int b) {
        if (a + b == 4) throw std::domain_error("four");
        return a + b;
      });
      g.barrier();
    });
    for (const std::string& what : all) {
      EXPECT_TRUE(what == "four" || (what.starts_with("left: ") && what.ends_with("four"))) << what;
    }
  });
}

TEST_P(groups, refuse_misuse) {
  run([] {
    endpoint a, b;
    EXPECT_THROW(group(a, {b.id()}), misuse_error);
    EXPECT_THROW(group(a, {a.id(), b.id(), a.id()}), misuse_error);
    EXPECT_THROW(group(a, {}), misuse_error);
    endpoint_id ended;
    {
      const endpoint gone;
      ended = gone.id();
    }
    EXPECT_THROW(group(a, {a.id(), ended}), endpoint_closed_error);
    EXPECT_THROW(group(a, {ended, a.id()}), endpoint_closed_error);
    {
      group alone(a, {a.id()});
      EXPECT_THROW((void)alone.broadcast(1, 1), misuse_error);
      EXPECT_THROW(alone.barrier(), member_left_error);
    }
    {
      group alone(a, {a.id()});
      std::vector<int> out(3), in(4);
      EXPECT_THROW(alone.all_to_all(out, in), misuse_error);
    }
    // Lists of different members that have the same neighbours.
    endpoint c;
    std::atomic<int> told{0};
    const auto make = [&](endpoint& mine, std::vector<endpoint_id> list) {
      return thread([&mine, list, &told] {
        try {
          const group g(mine, list);
        } catch (const group_error&) {
          ++told;
        }
      });
    };
    std::array threads{make(a, {a.id(), b.id(), c.id()}), make(b, {a.id(), b.id(), c.id()}),
                       make(c, {b.id(), c.id(), a.id()})};
    for (thread& t : threads) t.join();
    EXPECT_EQ(told, 3);
  });
}

TEST_P(groups, rethrow_what_a_thread_of_run_group_throws) {
  run([] {
    try {
      run_group(5, [](group& g) {
        if (g.rank() == 3) throw std::out_of_range("the first");
        for (;;) g.barrier();
      });
      ADD_FAILURE() << "nothing was thrown";
    } catch (const std::out_of_range& e) {
      EXPECT_STREQ(e.what(), "the first");
    }
  });
}

TEST(run_group, refuses_more_threads_than_there_can_be) {
  options few = with_workers(2);
  few.stack_bytes = std::size_t{1} << 30;
  runtime rt(few);
  rt.run([] {
    const auto too_many = static_cast<unsigned>(detail::this_worker().owner->stacks.capacity()) + 1;
    EXPECT_THROW(run_group(too_many, [](group&) { ADD_FAILURE() << "it has begun"; }),
                 std::system_error);
    run_group(10, [](group& g) { EXPECT_EQ(g.all_reduce(1, std::plus<>()), 10); });
  });
}

struct makes_groups : threaded {
  bool* refused;
  void start() {
    try {
      run_group(1, [](group&) {});
    } catch (const misuse_error&) {
      *refused = true;
    }
    terminate();
  }
};

TEST(run_group, is_refused_in_a_fiber) {
  runtime rt(with_workers(1));
  bool refused = false;
  rt.run([&] { token<makes_groups>(&refused); });
  rt.wait_idle();
  EXPECT_TRUE(refused);
}

}  // namespace
}  // namespace strata::test
