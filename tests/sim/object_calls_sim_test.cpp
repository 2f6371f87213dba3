// SPDX-License-Identifier: Apache-2.0
// Calls that take and return objects of any size, between simulated nodes over a network that
// misbehaves: each is made once with what it was given, and ends by a deadline if a node is lost
// while its arguments or its result are under way.
#include <algorithm>
#include <cereal/types/string.hpp>
#include <cereal/types/vector.hpp>
#include <chrono>
#include <cstring>
#include <exception>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "../common/unreadable.hpp"
#include "expected_error.hpp"
#include "messages/messenger.hpp"
#include "program_job.hpp"
#include "strata/remote_thread.hpp"
#include "strata/resource.hpp"
#include "strata/serialize.hpp"

namespace strata::test {
namespace {

using net::node_id;
using std::chrono::nanoseconds;

struct order {
  std::uint64_t number = 0;
  std::vector<char> content;
  template <class Archive>
  void serialize(Archive& a) {
    a(number, content);
  }
  friend bool operator==(const order&, const order&) = default;
};

std::vector<char> characters(std::size_t n, std::uint64_t seed) {
  std::vector<char> c(n);
  for (std::size_t i = 0; i < n; ++i) c[i] = static_cast<char>(seed * 31 + i + (i >> 8) * 7);
  return c;
}

// By the number of an order.
std::vector<unsigned> times_made;

// What it was given, and so much more.
order extended(const order& o, const std::string& by, std::uint64_t bytes) {
  ++times_made.at(o.number);
  order longer = o;
  longer.content.insert(longer.content.end(), by.begin(), by.end());
  const std::vector<char> more = characters(bytes, o.number);
  longer.content.insert(longer.content.end(), more.begin(), more.end());
  return longer;
}
void taken(const order& o) {
  ++times_made.at(o.number);
  EXPECT_EQ(o.content, characters(o.content.size(), o.number));
}
struct archive_of_orders {
  std::size_t bytes = 0;
  std::string keep(const order& o) {
    ++times_made.at(o.number);
    bytes += o.content.size();
    return std::string(o.content.begin(), o.content.end());
  }
};

// Around what a call carries, and what a message does.
std::size_t some_size(program_job& p) {
  constexpr std::size_t kib = 1024;
  switch (p.below(4)) {
    case 0:
      return p.below(200);
    case 1:
      return 16 * kib - 64 + p.below(128);
    case 2:
      return p.below(100 * kib);
    default:
      return 64 * kib - 128 + p.below(256);
  }
}

auto outcome_of_many_calls(std::uint64_t seed) {
  constexpr node_id nodes = 3;
  constexpr unsigned callers = 6, each = 8;
  times_made.assign(callers * each, 0);
  program_job p(
      seed, {.nodes = nodes, .transfer_bytes_min = seed % 2 == 0 ? 50'000 : net::transfers::never});
  p.cut_now_and_then(nodes);
  unsigned left = callers;
  p.begin(0, [&] {
    named<archive_of_orders> all("archive");
    while (left != 0) p.pause(program_job::ms);
  });
  for (unsigned c = 0; c < callers; ++c) {
    p.begin(static_cast<node_id>(c % nodes), [&, c] {
      const auto archive = resource<archive_of_orders>::await("archive");
      for (unsigned i = 0; i < each; ++i) {
        const std::uint64_t number = c * each + i;
        const on_node there{p.below(nodes)};
        const order o{number, characters(some_size(p), number)};
        switch (p.below(3)) {
          case 0: {
            const std::string by(p.below(3) == 0 ? some_size(p) : 3, 'b');
            const std::uint64_t more = some_size(p);
            order expected = o;
            expected.content.insert(expected.content.end(), by.begin(), by.end());
            const auto end = characters(more, number);
            expected.content.insert(expected.content.end(), end.begin(), end.end());
            EXPECT_EQ(call<extended>(there, o, by, more), expected);
            break;
          }
          case 1:
            remote_thread(there, call<taken>(o)).join();
            break;
          default:
            EXPECT_EQ(archive.call<&archive_of_orders::keep>(o),
                      std::string(o.content.begin(), o.content.end()));
        }
      }
      --left;
    });
  }
  p.run();
  EXPECT_EQ(std::count(times_made.begin(), times_made.end(), 1U), callers * each)
      << "each is made once";
  return p.outcome();
}

TEST(simulated_object_calls, are_made_once_with_what_they_were_given) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    (void)outcome_of_many_calls(seed);
  }
}

TEST(simulated_object_calls, are_replayed_from_a_seed) {
  EXPECT_EQ(outcome_of_many_calls(7), outcome_of_many_calls(7));
}

// ---- errors ----

void read(const unreadable&) { ADD_FAILURE() << "it has begun"; }
unreadable written(const std::string& text) { return {text}; }
std::string refused(const std::string& text) { throw std::out_of_range(text); }

TEST(simulated_object_calls, throw_what_is_wrong_with_them) {
  program_job p(1, {.nodes = 2});
  p.begin(0, [&] {
    for (const std::size_t bytes : {std::size_t{9}, std::size_t{100'000}}) {
      const std::string text(bytes, 't');
      const auto is = [](const char* type, const std::string& words) {
        return [type, words](const remote_error& e) {
          return e.node() == 1 && e.type_name() == type &&
                 e.message().find(words) != std::string::npos;
        };
      };
      const on_node there{1};
      expect_error<remote_error>(
          p, "an argument", INT64_MAX, [&] { call<read>(there, unreadable{text}); },
          is("strata::serialization_error", "nobody reads"));
      expect_error<remote_error>(
          p, "an argument of a thread", INT64_MAX,
          [&] { remote_thread(there, call<read>(unreadable{text})).join(); },
          is("strata::serialization_error", "nobody reads"));
      expect_error<remote_error>(
          p, "no memory", INT64_MAX, [&] { call<read>(there, unreadable{"no memory"}); },
          is("strata::serialization_error", "bad_alloc"));
      expect_error<serialization_error>(p, "a result", INT64_MAX,
                                        [&] { (void)call<written>(there, text); });
      // Nobody looks at what a thread returns.
      remote_thread(there, call<written>(text)).join();
      expect_error<remote_error>(
          p, "the function", INT64_MAX, [&] { (void)call<refused>(there, text); },
          is("std::out_of_range", "t"));
    }
  });
  p.run();
}

// A call that says of its arguments what is not so.
std::uint64_t said_bytes, said_large_value;
struct lying_call {
  using honest = detail::object_travel<travelling_call<refused, std::string>, true>;
  static void pack(const detail::task& t, std::uint16_t here, std::byte* out) {
    detail::object_call_at_home::pack(t, here, out);
    detail::object_head head;
    std::memcpy(&head, out, sizeof head);
    head.bytes = said_bytes;
    if (said_large_value != 0) head.large_value = said_large_value;
    std::memcpy(out, &head, sizeof head);
  }
  static const detail::wire_type& wire() {
    static const detail::wire_type w = [] {
      detail::wire_type lies = honest::wire;
      lies.pack = &pack;
      return lies;
    }();
    return w;
  }
};

TEST(simulated_object_calls, refuse_lengths_that_are_not_so) {
  const detail::task_type type{nullptr, nullptr, nullptr, &detail::type_name<lying_call>,
                               &lying_call::wire()};
  program_job p(1, {.nodes = 2});
  p.begin(0, [&] {
    const auto expect_refused = [&](const char* what, std::size_t sent, std::uint64_t said,
                                    const char* error, std::uint64_t large_value = 0) {
      said_bytes = said;
      said_large_value = large_value;
      // A text for which the call would be made.
      detail::object_bytes bytes;
      if (sent != 0) detail::append_value(bytes, std::string(sent - sizeof(std::uint64_t), 't'));
      detail::object_call_at_home lies(type, std::move(bytes), true);
      lies.begin(1);
      expect_error<remote_error>(
          p, what, INT64_MAX, [&] { (void)lies.wait(); },
          [&](const remote_error& e) { return e.type_name() == error; });
    };
    const char* const nonsense = "strata::serialization_error";
    expect_refused("too few", 20, 21, nonsense);
    expect_refused("too many", 20, 19, nonsense);
    expect_refused("none", 0, 1, nonsense);
    expect_refused("large ones that have come", 20, 20'000, nonsense);
    expect_refused("too few large ones", 20'000, 20'001, nonsense);
    expect_refused("too many large ones", 100'000, 99'999, nonsense);
    // AddressSanitizer ends the process instead.
    if (!address_sanitizer)
      expect_refused("more than there is memory", 20'000, std::uint64_t{1} << 62, "std::bad_alloc");
    expect_refused("those of another call", 20'000, 20'000, "strata::error", UINT64_MAX);
  });
  p.run();
}

// Makes a call, and does otherwise with its result than it has announced.
struct lying_maker : detail::task {
  static inline std::uint64_t announced = 0;
  static inline std::optional<std::uint64_t> sent{};
  detail::object_head head;

  static detail::task* unpack(detail::worker& w, const std::byte* in) {
    auto* const t = ::new (w.frames.allocate(sizeof(lying_maker))) lying_maker{{&kind}, {}};
    std::memcpy(&t->head, in, sizeof t->head);
    return t;
  }
  static void ignore(detail::task&, std::span<const std::byte>) noexcept {}
  static void body(detail::task& t) {
    const detail::object_head head = static_cast<lying_maker&>(t).head;
    abandon(t, detail::this_worker());
    std::exception_ptr error;
    try {
      const endpoint_id room = messages::room_for_result(head, announced);
      if (sent) messages::send_result(room, std::vector<std::byte>(*sent));
    } catch (...) {
      error = std::current_exception();
    }
    detail::give_back_result(detail::global_address::from_bits(head.home), error, nullptr, 0);
  }
  static void abandon(detail::task& t, detail::worker& w) {
    w.frames.deallocate(&t, sizeof(lying_maker));
  }
  static constexpr detail::task_type kind{&detail::run_on_stack, &body, &abandon,
                                          &detail::type_name<lying_maker>};
  static const detail::travelling_code code;
  static constexpr detail::wire_type wire{.argument_bytes = sizeof(detail::object_head),
                                          .pack = &detail::object_call_at_home::pack,
                                          .unpack = &unpack,
                                          .name = &detail::type_name<lying_maker>,
                                          .code = &code,
                                          .accept = &detail::object_call_at_home::accept,
                                          .take_arguments = &ignore,
                                          .take_result = &detail::object_call_at_home::take_behind};
  static constexpr detail::task_type at_home{nullptr, nullptr, nullptr,
                                             &detail::type_name<lying_maker>, &wire};
};
const detail::travelling_code lying_maker::code{wire, &detail::__ehdr_start};

TEST(simulated_object_calls, refuse_results_that_are_not_as_announced) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    program_job p(seed, {.nodes = 2});
    p.begin(0, [&] {
      const auto expect_refused = [&](std::uint64_t announced, std::optional<std::uint64_t> sent,
                                      const std::string& why) {
        lying_maker::announced = announced;
        lying_maker::sent = sent;
        detail::object_call_at_home one(lying_maker::at_home, {}, true);
        one.begin(1);
        try {
          (void)one.wait();
          ADD_FAILURE() << "taken for " << announced << " bytes";
        } catch (const serialization_error& e) {
          EXPECT_NE(std::string(e.what()).find(why), std::string::npos) << e.what();
        } catch (const remote_error& e) {
          EXPECT_EQ(e.type_name(), "strata::serialization_error");
          EXPECT_NE(e.message().find(why), std::string::npos) << e.what();
        }
      };
      expect_refused(100'000, 40'000, "they are fewer");
      expect_refused(40'000, 100'000, "they are more");
      expect_refused(100, 3'000, "they are more");
      expect_refused(3'000, 0, "they are fewer");
      expect_refused(40'000, std::nullopt, "they have not been sent");
    });
    p.run();
  }
}

// ---- losses ----

std::uint64_t size_of_order(const order& o) {
  this_thread::sleep_for(nanoseconds(100'000));
  return o.content.size();
}
order order_of_size(std::uint64_t bytes) { return {0, std::vector<char>(bytes)}; }

// Whoever calls, or makes the call, may be the one that is lost; the others hear of it.
TEST(simulated_object_calls, throw_when_a_node_is_lost) {
  unsigned made = 0;
  for (const std::uint64_t seed : seeds()) {
    for (const bool large_result : {false, true}) {
      STRATA_WITH_SEED(seed);
      constexpr node_id nodes = 3;
      const sim::job_model model{
          .nodes = nodes, .lost_after_ns = 30 * program_job::ms, .breaks_off = true};
      program_job p(seed, model, program_job::disorderly);
      const std::int64_t crashes_at = p.crash_one(nodes, 20 * program_job::ms).at_ns;
      unsigned told = 0;
      for (node_id n = 0; n < nodes; ++n) {
        for (node_id to = 0; to < nodes; ++to) {
          if (n == to) continue;
          p.begin(n, [&, to] {
            const order sent{0, std::vector<char>(90'000)};
            try {
              for (;;) {
                if (large_result) {
                  EXPECT_EQ(call<order_of_size>(on_node{to}, std::uint64_t{90'000}).content.size(),
                            90'000U);
                } else {
                  EXPECT_EQ(call<size_of_order>(on_node{to}, sent), 90'000U);
                }
                ++made;
                p.pause(program_job::ms);
              }
            } catch (const node_lost_error&) {
            }
            EXPECT_LE(p.now_ns(), crashes_at + 2 * model.lost_after_ns);
            ++told;
          });
        }
      }
      p.run();
      EXPECT_EQ(told, nodes * (nodes - 1U));
      p.world.run([] { return false; }, p.now_ns() + 10 * program_job::ms);
      for (node_id n = 0; n < nodes; ++n)
        EXPECT_EQ(p.job->node(n).messenger.large_values->size(), 0U) << "of calls that have ended";
    }
  }
  EXPECT_GT(made, 0U);
}

}  // namespace
}  // namespace strata::test
