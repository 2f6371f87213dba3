// SPDX-License-Identifier: Apache-2.0
#include "net/tcp/handshake.hpp"

#include <gtest/gtest.h>
#include <sodium.h>

#include <cstdio>
#include <cstring>
#include <random>
#include <vector>

namespace strata::net::tcp {
namespace {

using state = handshake::state;
using bytes = std::vector<std::byte>;

identity node(node_id number, node_id nodes = 4) {
  identity me;
  me.job = 0x1234'5678'9ABC;
  for (std::size_t i = 0; i < me.key.size(); ++i) me.key[i] = static_cast<std::uint8_t>(i * 3);
  me.node = number;
  me.nodes = nodes;
  me.build_id = "ab12cd34";
  return me;
}

nonce nonce_of(int seed) {
  nonce n;
  n.fill(static_cast<std::uint8_t>(seed));
  return n;
}

bool nobody(node_id) { return false; }

// Carries bytes between two sides until neither has more to say, at most `step` at once, and lets
// somebody change them: alter(from_connector, offset, byte).
using alteration = std::function<void(bool, std::size_t, std::byte&)>;
void converse(handshake& connector, handshake& acceptor, std::size_t step = 1000,
              const alteration& alter = {}) {
  std::size_t said[2] = {0, 0};
  const auto carry = [&](handshake& from, handshake& to, bool from_connector) {
    const auto out = from.outgoing();
    const std::size_t n = std::min({out.size(), to.wanted(), step});
    if (n == 0) return false;
    bytes copy(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(n));
    for (std::byte& b : copy) {
      const std::size_t offset = said[from_connector]++;
      if (alter) alter(from_connector, offset, b);
    }
    from.sent(n);
    to.received(copy);
    return true;
  };
  while (carry(connector, acceptor, true) || carry(acceptor, connector, false)) {
  }
}

struct pair {
  identity connecting;
  identity accepting;
  handshake connector;
  handshake acceptor;
  explicit pair(identity c, identity a, std::function<bool(node_id)> has_joined = nobody)
      : connecting(std::move(c)),
        accepting(std::move(a)),
        connector(handshake::connector(connecting, 1, nonce_of(1))),
        acceptor(handshake::acceptor(accepting, std::move(has_joined), nonce_of(2))) {}
  pair(const pair&) = delete;
  [[nodiscard]] bool both_joined() const {
    return connector.now() == state::joined && acceptor.now() == state::joined;
  }
};

TEST(handshake, two_nodes_of_a_job_join) {
  for (const std::size_t step : {1000u, 1u, 7u, 33u}) {
    pair p(node(3), node(1));
    converse(p.connector, p.acceptor, step);
    EXPECT_TRUE(p.both_joined());
    EXPECT_EQ(p.connector.peer(), 1);
    EXPECT_EQ(p.acceptor.peer(), 3);
    EXPECT_TRUE(p.acceptor.proved());
    EXPECT_EQ(p.acceptor.wanted(), 0u);
    EXPECT_TRUE(p.acceptor.outgoing().empty());
  }
}

TEST(handshake, the_longest_build_id_fits) {
  pair p(node(3), node(1));
  p.connecting.build_id = p.accepting.build_id = std::string(build_id_bytes_max, 'f');
  converse(p.connector, p.acceptor);
  EXPECT_TRUE(p.both_joined());
}

TEST(handshake, a_stranger_is_known_by_its_first_wrong_byte) {
  const identity me = node(1);
  for (const char* text : {"G", "STRATE", "\n"}) {
    handshake h = handshake::acceptor(me, nobody, nonce_of(2));
    h.received(std::as_bytes(std::span(text, std::strlen(text))));
    EXPECT_EQ(h.now(), state::refused);
    EXPECT_EQ(h.reason(), refusal::not_strata);
    EXPECT_TRUE(h.outgoing().empty());
    EXPECT_EQ(h.wanted(), 0u);
  }
}

TEST(handshake, who_has_another_key_is_told_nothing) {
  pair p(node(3), node(1));
  p.connecting.key[31] ^= 1;
  converse(p.connector, p.acceptor);
  EXPECT_EQ(p.acceptor.now(), state::refused);
  EXPECT_EQ(p.acceptor.reason(), refusal::wrong_key);
  EXPECT_FALSE(p.acceptor.proved());
  EXPECT_EQ(p.connector.now(), state::talking);  // it waits for a verdict until it is cut off
}

TEST(handshake, a_wrong_key_hides_every_other_mistake) {
  pair p(node(3), node(1));
  p.connecting.key[0] ^= 1;
  p.connecting.build_id = "another";
  p.connecting.version += 1;
  converse(p.connector, p.acceptor);
  EXPECT_EQ(p.acceptor.reason(), refusal::wrong_key);
}

// Who has proved the key hears the reason, and both sides can say it.
void expect_refused(pair& p, refusal why) {
  converse(p.connector, p.acceptor);
  EXPECT_EQ(p.acceptor.now(), state::refused);
  EXPECT_EQ(p.connector.now(), state::refused);
  EXPECT_STREQ(name_of(p.acceptor.reason()), name_of(why));
  EXPECT_STREQ(name_of(p.connector.reason()), name_of(why));
  EXPECT_TRUE(p.acceptor.proved());
  EXPECT_TRUE(p.connector.proved());
  for (const handshake* h : {&p.acceptor, &p.connector}) {
    EXPECT_FALSE(h->explanation().empty());
    EXPECT_EQ(h->explanation().find('\n'), std::string::npos);
  }
}

TEST(handshake, another_version) {
  pair p(node(3), node(1));
  p.connecting.version = wire_version + 1;
  expect_refused(p, refusal::other_version);
}

TEST(handshake, another_build) {
  pair p(node(3), node(1));
  p.connecting.build_id = "ab12cd3";
  expect_refused(p, refusal::other_build);
  EXPECT_NE(p.connector.explanation().find("(ab12cd34), this node ab12cd3"), std::string::npos);
}

TEST(handshake, another_build_cannot_command_the_terminal) {
  pair p(node(3), node(1));
  p.connecting.build_id = "\x1b[2J\n";
  converse(p.connector, p.acceptor);
  EXPECT_NE(p.acceptor.explanation().find("(?[2J?)"), std::string::npos);
}

TEST(handshake, another_job) {
  pair p(node(3), node(1));
  p.connecting.job += 1;
  expect_refused(p, refusal::wrong_job);
}

TEST(handshake, a_number_that_does_not_exist) {
  pair p(node(4), node(1));
  expect_refused(p, refusal::bad_node);
}

TEST(handshake, a_number_that_should_have_waited_to_be_called) {
  pair p(node(0), node(1));
  expect_refused(p, refusal::bad_node);
}

TEST(handshake, ones_own_number) {
  pair p(node(1), node(1));
  expect_refused(p, refusal::bad_node);
}

TEST(handshake, another_size_of_the_job) {
  pair p(node(3, 5), node(1, 4));
  expect_refused(p, refusal::bad_node);
}

TEST(handshake, a_node_that_looked_for_somebody_else) {
  pair p(node(3), node(2));  // the connector of a pair looks for node 1
  expect_refused(p, refusal::bad_node);
}

TEST(handshake, a_node_that_has_joined) {
  pair p(node(3), node(1), [](node_id n) { return n == 3; });
  expect_refused(p, refusal::duplicate_node);
}

TEST(handshake, yesterdays_words_are_worth_nothing) {
  bytes said;
  pair first(node(3), node(1));
  converse(first.connector, first.acceptor, 1000,
           [&](bool from_connector, std::size_t, std::byte& b) {
             if (from_connector) said.push_back(b);
           });
  ASSERT_TRUE(first.both_joined());
  const identity me = node(1);
  handshake second = handshake::acceptor(me, nobody, nonce_of(3));
  std::size_t at = 0;
  while (second.now() == state::talking) {
    second.sent(second.outgoing().size());
    const std::size_t n = second.wanted();
    second.received(std::span(said).subspan(at, n));
    at += n;
  }
  EXPECT_EQ(second.reason(), refusal::wrong_key);
}

TEST(handshake, an_echo_is_no_proof) {
  const identity me = node(3);
  handshake h = handshake::connector(me, 1, nonce_of(1));
  bytes heard;
  while (h.now() == state::talking) {
    const auto out = h.outgoing();
    heard.insert(heard.end(), out.begin(), out.end());
    h.sent(out.size());
    if (h.now() != state::talking) break;
    ASSERT_GE(heard.size(), h.wanted());
    h.received(std::span(heard).last(h.wanted()));
  }
  EXPECT_EQ(h.reason(), refusal::wrong_key);
}

TEST(handshake, a_bit_flipped_anywhere_keeps_them_apart) {
  std::size_t said[2] = {0, 0};
  {
    pair p(node(3), node(1));
    converse(p.connector, p.acceptor, 1000,
             [&](bool from_connector, std::size_t, std::byte&) { ++said[from_connector]; });
    ASSERT_TRUE(p.both_joined());
  }
  for (const bool from_connector : {false, true}) {
    for (std::size_t bit = 0; bit < said[from_connector] * 8; ++bit) {
      pair p(node(3), node(1));
      converse(p.connector, p.acceptor, 1000, [&](bool from, std::size_t offset, std::byte& b) {
        if (from == from_connector && offset == bit / 8) b ^= static_cast<std::byte>(1 << bit % 8);
      });
      // Who heard the altered bit refuses.
      const handshake& hearer = from_connector ? p.acceptor : p.connector;
      ASSERT_FALSE(p.both_joined()) << bit;
      if (hearer.now() != state::refused) {
        // An altered challenge is noticed by the one who sent it.
        ASSERT_FALSE(from_connector) << bit;
        ASSERT_EQ(p.acceptor.now(), state::refused) << bit;
      }
    }
  }
}

TEST(handshake, garbage_never_joins) {
  const auto seed = std::random_device{}();
  std::printf("seed %u\n", seed);
  std::mt19937 random(seed);
  const identity me = node(1);
  for (int round = 0; round < 3000; ++round) {
    handshake h = random() % 2 == 0 ? handshake::acceptor(me, nobody, nonce_of(2))
                                    : handshake::connector(me, 0, nonce_of(1));
    bool first = true;
    while (h.now() == state::talking) {
      h.sent(h.outgoing().size());
      bytes noise(random() % (h.wanted() + 1));
      for (std::byte& b : noise) b = static_cast<std::byte>(random());
      // Often enough the magic is right.
      if (first && noise.size() >= 8 && random() % 2 == 0)
        std::memcpy(noise.data(), "STRATA\n1", 8);
      if (!noise.empty()) first = false;
      h.received(noise);
    }
    ASSERT_EQ(h.now(), state::refused);
    ASSERT_FALSE(h.proved());
  }
}

// A node of ours that runs wild: its claims are anything, and properly signed.
TEST(handshake, signed_nonsense_is_refused) {
  const auto seed = std::random_device{}();
  std::printf("seed %u\n", seed);
  std::mt19937 random(seed);
  ASSERT_GE(sodium_init(), 0);
  constexpr std::size_t hello = 40;
  constexpr std::size_t challenge = 32;
  constexpr std::size_t claims = 83;
  const identity me = node(1);
  bytes good(hello + challenge + claims);
  {
    pair p(node(3), node(1));
    converse(p.connector, p.acceptor, 1000, [&](bool from_connector, std::size_t at, std::byte& b) {
      const std::size_t offset = at < hello || !from_connector ? at : at + challenge;
      if (from_connector && offset < good.size()) good[offset] = b;
      if (!from_connector && offset < challenge) good[hello + offset] = b;
    });
  }
  for (int round = 0; round < 3000; ++round) {
    bytes said = good;
    const unsigned changes = random() % 4;
    for (unsigned c = 0; c < changes; ++c) {
      said[hello + challenge + random() % claims] = static_cast<std::byte>(random());
    }
    unsigned char mac[32];
    crypto_auth_hmacsha256_state s;
    crypto_auth_hmacsha256_init(&s, me.key.data(), me.key.size());
    const char label[] = "strata join, connector";
    crypto_auth_hmacsha256_update(&s, reinterpret_cast<const unsigned char*>(label), sizeof label);
    crypto_auth_hmacsha256_update(&s, reinterpret_cast<const unsigned char*>(said.data()),
                                  said.size());
    crypto_auth_hmacsha256_final(&s, mac);

    handshake h = handshake::acceptor(me, nobody, nonce_of(2));
    h.received(std::span(said).first(hello));
    h.sent(h.outgoing().size());
    h.received(std::span(said).last(claims));
    h.received(std::as_bytes(std::span(mac)));
    h.sent(h.outgoing().size());
    ASSERT_TRUE(h.proved());
    ASSERT_FALSE(h.explanation().empty());
    // The bytes behind the end of the build id mean nothing, and another node may be named.
    const bool joined = h.now() == state::joined;
    ASSERT_TRUE(joined || said != good);
    ASSERT_TRUE(!joined || h.peer() == 2 || h.peer() == 3);
  }
}

TEST(handshake, nonces_are_fresh) { EXPECT_NE(fresh_nonce(), fresh_nonce()); }

}  // namespace
}  // namespace strata::net::tcp
