// SPDX-License-Identifier: Apache-2.0
// What no node of this program says: whatever a message of any kind is made of, it is refused, or
// does what it may; nothing outside of bounds is touched (a sanitizer's build sees to that), no
// memory is asked for that nobody has sent, and it ends.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "../common/refused_new.hpp"
#include "cluster/words/codec.hpp"
#include "messages/directory.hpp"
#include "recorded_talk.hpp"
#include "support.hpp"

namespace strata::test {
namespace {

// While something is heard no more than that is asked for at once. What is sent on is copied, in
// pieces; what is large grows as it comes, to twice as much.
constexpr std::size_t bytes_at_once_max = std::size_t{4} << 20;

const corpus& recorded() {
  static const corpus all = record_talk();
  return all;
}

heard hear_within_bounds(const std::function<heard()>& hear) {
  heard how = heard::taken;
  {
    const refused_new bound(bytes_at_once_max + 1);
    how = hear();
  }
  EXPECT_LE(refused_new::most_asked(), bytes_at_once_max);
  return how;
}

std::string text_of(kind k, std::span<const std::byte> payload) {
  std::string text = "kind " + std::to_string(static_cast<unsigned>(k)) + ", " +
                     std::to_string(payload.size()) + " bytes:";
  for (const std::byte b : payload.first(std::min<std::size_t>(payload.size(), 64))) {
    std::array<char, 4> hex{};
    std::snprintf(hex.data(), hex.size(), " %02x", static_cast<unsigned>(b));
    text += hex.data();
  }
  return text;
}

void hear_everywhere(hearing_job& j, kind k, const payload_bytes& payload) {
  SCOPED_TRACE(text_of(k, payload));
  const auto [at, from] = j.any_two();
  (void)hear_within_bounds(
      [&, at = at, from = from] { return j.hear_anywhere(at, from, k, payload); });
  if (j.random().below(4) == 0) j.go_on(j.random().below(100));
}

// ---- what the corpus has to have ----

TEST(nonsense, is_made_of_every_kind_that_nodes_say_to_each_other) {
  for (const kind k : {kind::signal,        kind::increment,      kind::put,       kind::get,
                       kind::got,           kind::invoke,         kind::drop_in,   kind::returned,
                       kind::message,       kind::offer,          kind::pull,      kind::piece,
                       kind::fetched,       kind::room,           kind::closed,    kind::steal,
                       kind::tokens,        kind::nothing,        kind::probe,     kind::passive,
                       kind::ping,          kind::pong,           kind::failed,    kind::settled,
                       kind::heartbeat,     kind::arrive,         kind::known,     kind::leaving,
                       kind::farewell,      kind::kept_back,      kind::left,      kind::parted,
                       kind::next_ways,     kind::ways_ready,     kind::use_ways,  kind::way_ends,
                       kind::ways_done,     kind::ways_over,      kind::spare_me,  kind::spared,
                       kind::forwards,      kind::cut_off,        kind::resume,    kind::confirmed,
                       kind::measure_again, kind::measured_again, kind::saw_leave, kind::who_waits,
                       kind::waits_here,    kind::seek,           kind::sought,    kind::recall,
                       kind::told}) {
    EXPECT_TRUE(recorded().contains(k)) << "kind " << static_cast<unsigned>(k);
  }
}

// ---- without a whole message ----

TEST(nonsense, that_is_empty_or_ends_too_soon_is_refused_or_does_no_harm) {
  for (const auto f : hearing_job::all_flavours) {
    for (unsigned n = 0; n <= last_kind; ++n) {
      const auto k = static_cast<kind>(n);
      hearing_job j(f, n, 3'000);
      hear_everywhere(j, k, {});
      const auto found = recorded().find(k);
      if (found == recorded().end()) continue;
      const said& s = found->second[j.random().below(found->second.size())];
      for (std::size_t length = 1; length < std::min<std::size_t>(s.payload.size(), 150); ++length)
        hear_everywhere(j, k, {s.payload.begin(), s.payload.begin() + static_cast<int>(length)});
      EXPECT_NO_THROW(j.check_failure());
    }
  }
}

// ---- of no kind ----

void expect_of_no_kind(hearing_job::flavour f, unsigned number) {
  const auto k = static_cast<kind>(number);
  SCOPED_TRACE(text_of(k, {}));
  hearing_job j(f, number, 1'000);
  const auto [at, from] = j.any_two();
  EXPECT_EQ(j.hear(at, from, k, {}), heard::malformed);
  j.job().node(at).receive(from, k, {});
  EXPECT_TRUE(j.job().node(at).losses().contains(from));
}

TEST(nonsense, of_a_kind_that_there_is_not_is_a_loss) {
  constexpr std::array<std::pair<unsigned, unsigned>, 6> between_all{
      {{0, 0}, {25, 31}, {35, 39}, {44, 47}, {last_kind, last_kind + 9}, {0xffff, 0xffff}}};
  for (const auto f : hearing_job::all_flavours) {
    for (const auto& [first, last] : between_all) {
      for (unsigned n = first; n <= last; ++n) expect_of_no_kind(f, n);
    }
  }
  // Where nobody comes, and no ways change.
  for (const kind k : {kind::arrive, kind::parted, kind::next_ways, kind::cut_off, kind::confirmed})
    expect_of_no_kind(hearing_job::flavour::fixed, static_cast<unsigned>(k));
}

// ---- random bytes ----

void hear_random_bytes(hearing_job::flavour f, std::uint64_t seed) {
  hearing_job j(f, seed, 4'000);
  for (int i = 0; i < 1'500; ++i) {
    const auto k = static_cast<kind>(j.random().below(last_kind + 1));
    const bool is_long = j.random().below(40) == 0;
    payload_bytes p(j.random().below(is_long ? cluster::message_bytes_max : 100));
    for (std::byte& b : p) b = static_cast<std::byte>(j.random().next());
    // Small numbers are numbers of nodes, of bytes, of messages.
    for (std::size_t at = 0; at + 8 <= p.size() && at < 64; at += 8) {
      if (j.random().below(2) == 0) set_value<std::uint64_t>(p, at, j.random().below(8));
    }
    hear_everywhere(j, k, p);
  }
  EXPECT_NO_THROW(j.check_failure());
}

TEST(nonsense, of_random_bytes_is_refused_or_does_no_harm) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    for (const auto f : hearing_job::all_flavours) hear_random_bytes(f, seed);
  }
}

// A comer that ends when it hears of a loss, while node 0 counts it still.
TEST(nonsense, is_not_heard_by_who_has_ended) {
  for (const auto f : hearing_job::all_flavours) hear_random_bytes(f, 19485732611983);
}

// ---- what was said, and changed on its way ----

// One message in so many is another one when it arrives; what it was meant for is there.
void change_on_the_way(hearing_job::flavour f, std::uint64_t seed, unsigned one_of,
                       std::map<kind, unsigned>& changed, unsigned& refused) {
  hearing_job* job = nullptr;
  prng random(seed);
  hearing_job j(
      f, seed, 0,
      [&](net::node_id at, net::node_id from, kind k, std::span<const std::byte> payload) {
        if (job == nullptr || random.below(one_of) != 0) return false;
        const payload_bytes m = mutated(k, payload, random);
        SCOPED_TRACE(text_of(k, m));
        const heard how = hear_within_bounds([&] { return job->hear(at, from, k, m); });
        ++changed[k];
        refused += how == heard::malformed ? 1U : 0U;
        return true;
      });
  job = &j;
  j.go_on(10'000);
  EXPECT_NO_THROW(j.check_failure());
}

TEST(nonsense, that_was_sense_when_it_was_sent_is_refused_or_does_no_harm) {
  std::map<kind, unsigned> changed;
  unsigned refused = 0;
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    for (const auto f : hearing_job::all_flavours) {
      for (std::uint64_t i = 0; i < 6; ++i)
        change_on_the_way(f, seed * 100 + i, i < 3 ? 40 : 5, changed, refused);
    }
  }
  EXPECT_GT(refused, 100U);
  if (std::getenv("STRATA_TEST_SEED") != nullptr) return;  // one seed need not show everything
  for (const kind k : {kind::put, kind::get, kind::message, kind::offer, kind::tokens, kind::probe,
                       kind::next_ways})
    EXPECT_GT(changed[k], 0U) << "kind " << static_cast<unsigned>(k);
}

// What was said in another run, at any time, changed or not.
void hear_what_was_said_before(hearing_job::flavour f, std::uint64_t seed) {
  hearing_job j(f, seed, 6'000);
  for (int n = 0; n < 250; ++n) {
    auto any = recorded().begin();
    std::advance(any, j.random().below(recorded().size()));
    const auto& [k, all] = *any;
    const said& s = all[j.random().below(all.size())];
    if (addresses_in(k).empty() && k != kind::invoke && k != kind::tokens) {
      const bool changes = j.random().below(3) != 0;
      hear_everywhere(j, k, changes ? mutated(k, s.payload, j.random()) : s.payload);
    } else {
      payload_bytes m = j.message_to_arena(s.at, k);
      m.resize(std::min(m.size(), s.payload.size()));
      hear_everywhere(j, k, mutated(k, m, j.random()));
    }
  }
  EXPECT_NO_THROW(j.check_failure());
}

TEST(nonsense, that_was_said_at_another_time_is_refused_or_does_no_harm) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    for (const auto f : hearing_job::all_flavours) {
      for (std::uint64_t i = 0; i < 3; ++i) hear_what_was_said_before(f, seed * 10 + i);
    }
  }
}

// So that a comer finds no way to the others, and ends without a word.
TEST(nonsense, leaves_no_way_for_a_comer) {
  for (std::uint64_t i = 0; i < 3; ++i)
    hear_what_was_said_before(hearing_job::flavour::networks, 90611483321470 + i);
}

// By another node, and around a connection: heads, and what is in them.
TEST(nonsense, within_other_messages_is_refused_or_does_no_harm) {
  std::vector<std::uint64_t> all = seeds();
  // A node that there is not asks for a detour to one that has gone.
  if (all.size() > 1) all.push_back(557'372'122);
  for (const std::uint64_t seed : all) {
    STRATA_WITH_SEED(seed);
    hearing_job j(hearing_job::flavour::networks, seed, 6'000);
    for (int i = 0; i < 1'500; ++i) {
      const auto [at, from] = j.any_two();
      payload_bytes p;
      const bool forwards = j.random().below(2) == 0;
      const auto other = static_cast<net::node_id>(j.random().below(7));
      // None that names places.
      const auto inner = static_cast<kind>(32 + j.random().below(last_kind - 31));
      if (forwards) {
        p.resize(sizeof(cluster::forwarded_head));
        const cluster::forwarded_head h{static_cast<net::message_kind>(inner), other,
                                        static_cast<net::node_id>(j.random().below(7)),
                                        static_cast<std::uint16_t>(j.random().below(4)),
                                        static_cast<std::uint32_t>(j.random().below(4))};
        std::memcpy(p.data(), &h, sizeof h);
      } else {
        cluster::detours::path way;
        for (auto n = j.random().below(5); n > 0; --n)
          way.push_back(static_cast<net::node_id>(j.random().below(6)));
        way.insert(way.begin() + static_cast<int>(j.random().below(way.size() + 1)), at);
        p = cluster::detour_head(other, inner, way);
        if (j.random().below(2) == 0)
          set_value<std::uint16_t>(p, 4,
                                   static_cast<std::uint16_t>(j.random().below(way.size() + 2)));
      }
      for (auto n = j.random().below(40); n > 0; --n)
        p.push_back(static_cast<std::byte>(j.random().next()));
      hear_everywhere(j, forwards ? kind::forward : kind::detour, p);
    }
    EXPECT_NO_THROW(j.check_failure());
  }
}

// What a leaver knew of the directory.
TEST(nonsense, of_names_is_refused_or_names_something) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    prng random(seed);
    messages::directory leaver;
    for (unsigned n = 0; n < 3; ++n) {
      detail::published_value v;
      v.found = 1;
      v.bytes = 8;
      v.publication = leaver.new_publication(static_cast<net::node_id>(n));
      const std::string name = "of node " + std::to_string(n);
      (void)leaver.enter(name, v);
      for (unsigned asks = 0; asks <= n; ++asks)
        (void)leaver.give(name, static_cast<net::node_id>(asks), false);
    }
    const payload_bytes packed = leaver.pack(cluster::part_bytes_max).front();
    unsigned refused = 0;
    for (int i = 0; i < 2'000; ++i) {
      const payload_bytes m = mutated(kind::names, packed, random);
      messages::directory heir;
      try {
        heir.inherit(m, 3, [](net::node_id) { return true; });
      } catch (const cluster::malformed&) {
        ++refused;
      }
    }
    EXPECT_GT(refused, 500U);
  }
}

}  // namespace
}  // namespace strata::test
