// SPDX-License-Identifier: Apache-2.0
// Which receive gets which message, against a search through plain lists.
#include "messages/matching.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <list>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "messages/out_of_turn.hpp"
#include "messages/port.hpp"
#include "messages/request.hpp"

namespace strata::messages {
namespace {

struct posted {
  match_links<posted> links[1];
  pattern wanted;
  std::uint64_t order = 0;
};
struct waiting {
  match_links<waiting> links[pattern_shapes];
  pattern sent_as;
  pattern as_sent() const {
    ++looks;
    return sent_as;
  }
  inline static unsigned long looks = 0;  // at any of them
};

endpoint_id endpoint_at(node_id_t node, std::uint64_t number) {
  return endpoint_id::from_bits(std::uint64_t{node} << 48 | std::uint64_t{1} << 24 | number);
}

bool fits(const pattern& wanted, const pattern& message) {
  return (wanted.source == any_endpoint || wanted.source == message.source ||
          wanted.source == any_endpoint_on(message.source.node())) &&
         (wanted.tag == any_tag ? message.tag <= message_tag_max : wanted.tag == message.tag);
}

// `many` nodes, endpoints on each, and tags; some of the tags are the runtime's own.
struct choice {
  unsigned many;
  std::mt19937_64 random{20};
  pattern message() {
    const auto node = static_cast<node_id_t>(random() % many);
    const auto tag = static_cast<message_tag>(random() % many);
    const bool is_internal = random() % 8 == 0;
    return {endpoint_at(node, 1 + random() % many), is_internal ? message_tag_max + 1 + tag : tag};
  }
  pattern wanted() {
    pattern p = message();
    const std::uint64_t kind = random() % 4;
    if (kind == 0) p.source = any_endpoint;
    if (kind == 1) p.source = any_endpoint_on(p.source.node());
    if (random() % 3 == 0) p.tag = any_tag;
    return p;
  }
};

class matching : public testing::TestWithParam<unsigned> {};

TEST_P(matching, of_receives_takes_the_oldest_that_fits) {
  choice c{.many = GetParam()};
  posted_receives<posted> table;
  std::list<std::unique_ptr<posted>> plain;
  for (int step = 0; step < 20'000; ++step) {
    // Grows for a while, then shrinks.
    const bool adds = c.random() % 100 < (step / 2'000 % 2 == 0 ? 65 : 35);
    if (adds) {
      plain.push_back(std::make_unique<posted>());
      plain.back()->wanted = c.wanted();
      table.add(*plain.back());
    } else if (c.random() % 5 == 0 && !plain.empty()) {
      auto any = plain.begin();
      std::advance(any, c.random() % plain.size());
      table.remove(**any);
      plain.erase(any);
    } else {
      const pattern m = c.message();
      const auto expected = std::find_if(plain.begin(), plain.end(),
                                         [&](const auto& p) { return fits(p->wanted, m); });
      const posted* const got = table.take(m);
      ASSERT_EQ(got, expected == plain.end() ? nullptr : expected->get()) << "step " << step;
      if (expected != plain.end()) plain.erase(expected);
    }
    ASSERT_EQ(table.empty(), plain.empty());
    if (step % 1'000 != 0) continue;
    std::vector<const posted*> all, found;
    for (const auto& p : plain) all.push_back(p.get());
    table.for_each([&](posted& p) { found.push_back(&p); });
    std::sort(all.begin(), all.end());
    std::sort(found.begin(), found.end());
    ASSERT_EQ(found, all) << "step " << step;
  }
}

TEST_P(matching, of_messages_finds_the_oldest_that_fits) {
  choice c{.many = GetParam()};
  waiting_messages<waiting> table;
  std::list<std::unique_ptr<waiting>> plain;
  for (int step = 0; step < 20'000; ++step) {
    const bool adds = c.random() % 100 < (step / 2'000 % 2 == 0 ? 65 : 35);
    if (adds) {
      plain.push_back(std::make_unique<waiting>());
      plain.back()->sent_as = c.message();
      table.add(*plain.back());
    } else if (c.random() % 8 == 0 && !plain.empty()) {
      // A sender takes it back.
      auto any = plain.begin();
      std::advance(any, c.random() % plain.size());
      table.remove(**any);
      plain.erase(any);
    } else {
      const pattern p = c.wanted();
      const auto expected = std::find_if(plain.begin(), plain.end(),
                                         [&](const auto& m) { return fits(p, m->sent_as); });
      waiting* const got = table.find(p);
      ASSERT_EQ(got, expected == plain.end() ? nullptr : expected->get()) << "step " << step;
      if (got == nullptr) continue;
      table.remove(*got);
      plain.erase(expected);
    }
    ASSERT_EQ(table.empty(), plain.empty());
    ASSERT_EQ(table.size(), plain.size());
  }
}

INSTANTIATE_TEST_SUITE_P(how_many, matching, testing::Values(1U, 2U, 3U, 12U));

// ---- every shape beside every other ----

const endpoint_id the_sender = endpoint_at(3, 5), its_neighbour = endpoint_at(3, 6),
                  a_stranger = endpoint_at(4, 5);
constexpr message_tag tag_sent = 7, tag_other = 8;
const pattern the_message{the_sender, tag_sent};

// All patterns that fit the_message, by shape.
const std::array<pattern, pattern_shapes> all_that_fit{{{any_endpoint, any_tag},
                                                        {any_endpoint, tag_sent},
                                                        {the_sender, any_tag},
                                                        {the_sender, tag_sent},
                                                        {any_endpoint_on(3), any_tag},
                                                        {any_endpoint_on(3), tag_sent}}};
// What almost does.
const std::array<pattern, 7> none_fits{{{any_endpoint, tag_other},
                                        {the_sender, tag_other},
                                        {any_endpoint_on(3), tag_other},
                                        {its_neighbour, any_tag},
                                        {a_stranger, tag_sent},
                                        {any_endpoint_on(4), any_tag},
                                        {any_endpoint_on(0), tag_sent}}};

TEST(matching_shapes, are_told_apart) {
  for (unsigned shape = 0; shape < pattern_shapes; ++shape) {
    EXPECT_EQ(all_that_fit[shape].shape(), shape);
    EXPECT_EQ(the_message.seen_as(shape), all_that_fit[shape]);
    EXPECT_TRUE(all_that_fit[shape].fits(the_message));
  }
  for (const pattern& p : none_fits) EXPECT_FALSE(p.fits(the_message));
}

// However they leave the tag open, and whatever the source.
TEST(matching_shapes, leave_messages_of_the_runtime_alone_unless_they_name_the_tag) {
  for (const message_tag tag : {message_tag_max + 1, any_tag - 1}) {
    const pattern internal{the_sender, tag};
    for (const pattern& p : all_that_fit) {
      EXPECT_FALSE(p.fits(internal));
      pattern named = p;
      named.tag = tag;
      EXPECT_TRUE(named.fits(internal));
      for (const bool others_wait : {false, true}) {
        posted_receives<posted> receives;
        waiting_messages<waiting> messages;
        posted open{}, other{}, exact{};
        waiting first{}, second{};
        open.wanted = p;
        other.wanted = none_fits[0];
        exact.wanted = named;
        receives.add(open);
        if (others_wait) receives.add(other);
        EXPECT_EQ(receives.take(internal), nullptr);
        receives.add(exact);
        EXPECT_EQ(receives.take(internal), &exact);
        EXPECT_EQ(receives.take(the_message), &open);

        first.sent_as = internal;
        second.sent_as = the_message;
        messages.add(first);
        EXPECT_EQ(messages.find(p), nullptr);
        messages.add(second);
        EXPECT_EQ(messages.find(p), &second);
        EXPECT_EQ(messages.find(named), &first);
      }
    }
  }
  EXPECT_TRUE((pattern{any_endpoint, any_tag}.fits({the_sender, message_tag_max})));
}

TEST(matching_shapes, a_node_is_no_endpoint_of_it) {
  EXPECT_EQ(any_endpoint_on(3).node(), 3);
  EXPECT_EQ(any_endpoint_on(0xFFFF).node(), 0xFFFF);
  EXPECT_TRUE(any_endpoint_on(0).is_any_on_node());
  EXPECT_NE(any_endpoint_on(0), any_endpoint);
  EXPECT_TRUE(any_endpoint_on(0));
  EXPECT_FALSE(any_endpoint.is_any_on_node());
  // The names that come nearest to it: the first and the last endpoint, the first and the last
  // time.
  for (const std::uint64_t number : {std::uint64_t{1}, port_table::ports_max - std::uint64_t{16}}) {
    for (const std::uint64_t generation :
         {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{0xFF'FFFF}}) {
      const auto one = endpoint_id::from_bits(generation << 24 | number);
      EXPECT_FALSE(one.is_any_on_node()) << number << " of generation " << generation;
    }
  }
}

TEST(matching_shapes, of_two_receives_the_first_gets_the_message) {
  for (unsigned a = 0; a < pattern_shapes; ++a) {
    for (unsigned b = 0; b < pattern_shapes; ++b) {
      SCOPED_TRACE("shapes " + std::to_string(a) + " and " + std::to_string(b));
      for (const bool others_wait : {false, true}) {
        posted_receives<posted> table;
        std::array<posted, none_fits.size()> others{};
        posted first{}, second{};
        const auto add = [&](posted& p, const pattern& wanted) {
          p.wanted = wanted;
          table.add(p);
        };
        for (std::size_t i = 0; others_wait && i < others.size(); ++i) add(others[i], none_fits[i]);
        add(first, all_that_fit[a]);
        EXPECT_EQ(table.only(), others_wait ? nullptr : &first);
        add(second, all_that_fit[b]);
        EXPECT_EQ(table.only(), nullptr);
        EXPECT_EQ(table.take(the_message), &first);
        EXPECT_EQ(table.take(the_message), &second);
        EXPECT_EQ(table.take(the_message), nullptr);
        // Anew, and the first one is cancelled, or the second.
        for (const bool the_first : {true, false}) {
          add(first, all_that_fit[a]);
          add(second, all_that_fit[b]);
          table.remove(the_first ? first : second);
          EXPECT_EQ(table.take(the_message), the_first ? &second : &first);
          EXPECT_EQ(table.take(the_message), nullptr);
        }
        EXPECT_EQ(table.empty(), !others_wait);
        for (std::size_t i = 0; others_wait && i < others.size(); ++i) table.remove(others[i]);
        EXPECT_TRUE(table.empty());
      }
    }
  }
}

TEST(matching_shapes, of_two_messages_the_first_goes_to_the_receive) {
  // They have waited longest, and fit some of the patterns.
  const std::array<pattern, 3> others{
      {{a_stranger, tag_sent}, {its_neighbour, tag_other}, {the_sender, tag_other}}};
  for (unsigned a = 0; a < pattern_shapes; ++a) {
    for (unsigned b = 0; b < pattern_shapes; ++b) {
      SCOPED_TRACE("shapes " + std::to_string(a) + " and " + std::to_string(b));
      // The index of a shape is made before the messages come, or when they are there.
      for (const bool asks_before : {false, true}) {
        waiting_messages<waiting> table;
        std::list<waiting> messages;
        const auto add = [&](const pattern& p) -> waiting& {
          messages.emplace_back();
          messages.back().sent_as = p;
          table.add(messages.back());
          return messages.back();
        };
        for (const pattern& p : others) add(p);
        const auto oldest = [&](const pattern& wanted) {
          const auto found = std::find_if(messages.begin(), messages.end(), [&](const waiting& m) {
            return fits(wanted, m.sent_as);
          });
          return found == messages.end() ? nullptr : &*found;
        };
        if (asks_before) {
          EXPECT_EQ(table.find(all_that_fit[a]), oldest(all_that_fit[a]));
          EXPECT_EQ(table.find(all_that_fit[b]), oldest(all_that_fit[b]));
        }
        add(the_message);
        add({its_neighbour, tag_sent});
        add(the_message);
        for (int i = 0; i < 3; ++i) {
          for (const unsigned shape : {a, b}) {
            waiting* const expected = oldest(all_that_fit[shape]);
            EXPECT_EQ(table.find(all_that_fit[shape]), expected);
            EXPECT_EQ(table.find(all_that_fit[shape]), expected) << "it stays";
            if (expected == nullptr) continue;
            table.remove(*expected);
            messages.remove_if([&](const waiting& m) { return &m == expected; });
          }
        }
        EXPECT_EQ(table.size(), messages.size());
      }
    }
  }
}

// What every endpoint and every message that waits takes (docs/experiments.md): many of them come
// out of a distant cache.
TEST(matching_memory, is_what_it_was_before_anybody_asked_for_a_node) {
  EXPECT_LE(sizeof(port), 192U);
  EXPECT_LE(sizeof(arrival), 208U);
}

// ---- what leaves before its turn ----

wanted_patterns all_of(const std::vector<pattern>& asked) {
  wanted_patterns wanted;
  for (const pattern& p : asked) wanted.add(p);
  return wanted;
}

// Of each source the program's older ones before, and of what is asked for as much as there is.
TEST_P(matching, sends_what_is_asked_for_in_the_order_of_its_source) {
  choice c{.many = GetParam()};
  for (int round = 0; round < 300; ++round) {
    waiting_messages<waiting> table;
    std::list<waiting> plain;
    for (std::uint64_t n = c.random() % 50; n > 0; --n) {
      plain.emplace_back().sent_as = c.message();
      table.add(plain.back());
    }
    std::vector<pattern> asked;
    for (std::uint64_t n = 1 + c.random() % 4; n > 0; --n) asked.push_back(c.wanted());
    const auto is_asked_for = [&](const waiting& w) {
      return std::ranges::any_of(asked, [&](const pattern& p) { return fits(p, w.sent_as); });
    };
    const bool is_any = std::ranges::any_of(plain, is_asked_for);
    wanted_patterns wanted = all_of(asked);
    std::vector<const waiting*> sent;
    EXPECT_EQ(take_out_of_turn(table, asked, wanted, [&](const waiting& w) { sent.push_back(&w); }),
              is_any);
    EXPECT_EQ(std::ranges::any_of(sent, [&](const waiting* w) { return is_asked_for(*w); }),
              is_any);
    EXPECT_EQ(table.size() + sent.size(), plain.size());
    const auto has_gone = [&](const waiting& w) { return std::ranges::count(sent, &w) != 0; };
    for (auto w = plain.begin(); w != plain.end(); ++w) {
      if (!has_gone(*w)) continue;
      const bool is_internal = w->sent_as.is_internal();
      for (auto older = plain.begin(); older != w; ++older) {
        if (older->sent_as.source != w->sent_as.source) continue;
        if (is_internal ? older->sent_as != w->sent_as : older->sent_as.is_internal()) continue;
        EXPECT_TRUE(has_gone(*older));
        EXPECT_LT(std::ranges::find(sent, &*older), std::ranges::find(sent, &*w));
      }
    }
    if (!sent.empty()) {
      EXPECT_TRUE(is_asked_for(*sent.back())) << "more than was asked for";
    }
  }
}

// A receiver that asks for the newest of many, again and again.
TEST(out_of_turn, looks_at_what_goes_however_much_waits) {
  constexpr unsigned many = 10'000, taken = 1'000;
  waiting_messages<waiting> table;
  std::vector<waiting> all(many);
  for (unsigned i = 0; i < many; ++i) {
    all[i].sent_as = {endpoint_at(1, 1 + i), i};
    table.add(all[i]);
  }
  const auto take = [&](unsigned i) {
    const std::vector<pattern> asked{{any_endpoint, i}};
    wanted_patterns wanted = all_of(asked);
    std::vector<const waiting*> sent;
    EXPECT_TRUE(
        take_out_of_turn(table, asked, wanted, [&](const waiting& w) { sent.push_back(&w); }));
    EXPECT_EQ(sent, std::vector<const waiting*>{&all[i]});
  };
  take(many - 1);  // makes the indexes
  const unsigned long before = waiting::looks;
  for (unsigned i = 0; i < taken; ++i) take(many - 2 - i);
  EXPECT_LT((waiting::looks - before) / taken, 50U);
}

}  // namespace
}  // namespace strata::messages
