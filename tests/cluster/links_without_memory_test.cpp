// SPDX-License-Identifier: Apache-2.0
// What waits for a neighbour, where there is no memory for the place that it waits in: it is said
// all the same, once, and in order.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <new>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../common/refused_new.hpp"
#include "cluster/links/detours.hpp"
#include "cluster/links/hold_words.hpp"
#include "cluster/links/links.hpp"
#include "nodes_in_a_row.hpp"

namespace strata::cluster {
namespace {

using test::refused_new;

// So much a queue asks for at once.
constexpr std::size_t queue_piece_bytes = 512;
// More than lie in one of those.
constexpr std::uint32_t numbers = 40;

// Over a network that breaks: takes numbers, while it is open.
class number_gate final : public net::transport {
 public:
  explicit number_gate(std::vector<std::uint32_t>& sent, bool opened = false)
      : is_open(opened), sent_(sent) {
    sent_.reserve(2 * numbers);
  }
  [[nodiscard]] net::capabilities about() const noexcept override {
    return {.reliable = true, .name = "gate", .may_break = true};
  }
  [[nodiscard]] bool reaches(node_id) const noexcept override { return true; }
  net::send_outcome try_send(node_id, net::header, std::span<const std::byte> head,
                             std::span<const std::byte> body) override {
    if (!is_open) return net::send_outcome::would_block;
    if (!std::exchange(has_memory, true)) throw std::bad_alloc();
    const auto whole = body.empty() ? head : body;
    std::uint32_t n = 0;
    std::memcpy(&n, whole.data() + whole.size() - sizeof n, sizeof n);
    sent_.push_back(n);
    return net::send_outcome::sent;
  }
  bool flush(node_id) override { return is_open; }
  std::size_t poll(net::receiver&, std::size_t) override { return 0; }
  void wait_for_messages(std::int64_t) override {}
  void wake_receiver() noexcept override {}
  void wait_for_room(std::int64_t) override {}
  void wake_sender() noexcept override {
    if (woken) woken();
  }
  [[nodiscard]] traffic counted() const noexcept override { return {}; }

  bool is_open;
  bool has_memory = true;  // or has some the next time
  std::function<void()> woken{};

 private:
  std::vector<std::uint32_t>& sent_;
};

void post_numbers(links& l, node_id to, std::uint32_t first, std::uint32_t end) {
  for (std::uint32_t i = first; i < end; ++i)
    EXPECT_TRUE(l.post(to, kind::put, std::as_bytes(std::span(&i, 1)), {}));
}

std::vector<std::uint32_t> all_from(std::uint32_t first, std::uint32_t end) {
  std::vector<std::uint32_t> all;
  for (std::uint32_t i = first; i < end; ++i) all.push_back(i);
  return all;
}

// The sender's thread has nobody to tell.
TEST(links_without_memory, know_what_they_have_given_to_a_connection) {
  std::vector<std::uint32_t> sent;
  number_gate way(sent);
  links l(1, {&way}, routes(1, 3, &row), links::traits{false, true});
  post_numbers(l, 2, 0, numbers);
  way.is_open = true;
  {
    const refused_new once(queue_piece_bytes, queue_piece_bytes, 1);
    EXPECT_TRUE(l.send_queued(way));
    EXPECT_EQ(refused_new::refused(), 1U);
  }
  EXPECT_EQ(sent, all_from(0, numbers));
  EXPECT_EQ(l.given(2), numbers);
}

// Whoever handles messages would wait for the queue, and its memory stay in use.
TEST(links_without_memory, let_others_to_a_queue_whose_transport_has_none) {
  std::vector<std::uint32_t> sent;
  number_gate way(sent);
  links l(1, {&way}, routes(1, 3, &row), links::traits{false, true});
  post_numbers(l, 2, 0, 2);
  way.is_open = true;
  way.has_memory = false;
  unsigned times = 0;
  way.woken = [&] {
    ++times;
    EXPECT_EQ(l.given(2), 0U);  // which takes the queue's lock
  };
  EXPECT_FALSE(l.send_queued(way)) << "it is to come back";
  EXPECT_EQ(times, 1U);
  EXPECT_TRUE(l.send_queued(way));
  EXPECT_EQ(sent, all_from(0, 2));
}

TEST(links_without_memory, say_again_all_that_a_connection_has_not_carried) {
  constexpr std::uint32_t come = 3;
  std::vector<std::uint32_t> first_sent, sent;
  number_gate first(first_sent, true), second(sent, true);
  links l(1, {&first, &second}, routes(1, 3, &row), links::traits{false, true});
  ASSERT_TRUE(l.has_spare(2));
  post_numbers(l, 2, 0, numbers);
  l.close(2);
  post_numbers(l, 2, numbers, numbers + 5);
  {
    const refused_new once(queue_piece_bytes, queue_piece_bytes, 1);
    EXPECT_NO_THROW(l.go_on(2, come));
    EXPECT_EQ(refused_new::refused(), 1U);
  }
  EXPECT_TRUE(l.send_queued(second));
  EXPECT_EQ(sent, all_from(come, numbers + 5));
  EXPECT_EQ(l.queued_bytes(2), 0U);
}

TEST(links_without_memory, let_go_all_that_was_kept_back) {
  std::vector<std::uint32_t> sent;
  number_gate way(sent, true);
  links l(0, {&way}, routes(0, 3), links::traits{true, false});
  l.keep_back(2, true);
  post_numbers(l, 2, 0, numbers);
  {
    const refused_new once(queue_piece_bytes, queue_piece_bytes, 1);
    EXPECT_NO_THROW(l.keep_back(2, false));
    EXPECT_EQ(refused_new::refused(), 1U);
  }
  EXPECT_TRUE(l.send_queued(way));
  EXPECT_EQ(sent, all_from(0, numbers));
  EXPECT_EQ(l.queued_bytes(2), 0U);
}

// Node 0 of three in a row, by which the others go around what has ended between them.
class passing_node final : public detours::hands {
 public:
  bool is_connected(node_id) override { return true; }
  std::uint64_t close(node_id) override { return 0; }
  std::uint64_t given(node_id) override { return 0; }
  std::uint64_t come(node_id) override { return 0; }
  bool say_by_spare(node_id, kind, std::span<const std::byte>) override { return false; }
  void drop_spare(node_id) override {}
  void go_on(node_id, std::uint64_t) override {}
  void say(node_id, kind, std::span<const std::byte>, std::span<const std::byte>) override {}
  void pass_on(node_id next, std::span<const std::byte>, std::span<const std::byte> payload,
               const detours::pair_in_order&) override {
    passed.emplace_back(next, payload.size());
  }
  void answer(node_id, kind, std::span<const std::byte>) override {}
  void let_go(node_id) override {}
  void heard_of(node_id) override {}
  void go_by(node_id, std::uint64_t, const detours::path&) override {}
  void go_by_another(node_id, const detours::path&) override {}
  void on_detoured(node_id, kind, std::span<const std::byte>) override {}
  routes ways_without(node_id n, const std::set<detours::pair>&) override { return {n, 3, &row}; }
  void end_detour(node_id, kind, std::span<const std::byte>) override {}
  bool has_ended_detour(node_id) override { return true; }
  bool begin_anew(node_id) override { return true; }
  void on_word(const detours::pair&, std::uint32_t) override {}
  void lose(node_id, const std::string&) override {}
  void cannot_reach(node_id, const std::string&) override {}

  std::vector<std::pair<node_id, std::size_t>> passed;
};

TEST(detours_without_memory, pass_on_what_nobody_else_knows_of) {
  const detours::path way{0, 2};
  std::vector<std::byte> message = detour_head(1, kind::put, way);
  const std::size_t head_bytes = message.size(), way_bytes = way.size() * sizeof way[0];
  message.resize(head_bytes + 5);
  for (const std::size_t refused : {way_bytes, head_bytes}) {
    passing_node h;
    h.passed.reserve(1);
    detours d(0, 3, {}, h);
    const refused_new once(refused, refused, 1);
    EXPECT_NO_THROW(d.on_message(1, kind::detour, reader(message)));
    EXPECT_EQ(refused_new::refused(), 1U);
    EXPECT_EQ(h.passed, (std::vector<std::pair<node_id, std::size_t>>{{2, 5}}));
  }
}

TEST(hold_words_without_memory, are_said_in_the_end) {
  words_told told;
  for (node_id to = 5; to < 8; ++to) EXPECT_EQ(told.hold({0, to}), 1U);
  {
    // Room for the second one.
    const refused_new once(2 * sizeof(words_told::words::value_type), SIZE_MAX, 1);
    EXPECT_THROW((void)told.release(), std::bad_alloc);
  }
  EXPECT_EQ(told.release().size(), 3U);
}

}  // namespace
}  // namespace strata::cluster
