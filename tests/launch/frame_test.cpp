// SPDX-License-Identifier: Apache-2.0
// What one end packs the other unpacks; everything else is refused, and nothing is read beyond what
// is there (the sanitizers watch).
#include "launch/frame.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "launch/messages.hpp"
#include "random.hpp"
#include "strata/error.hpp"
#include "tools/strata/control/control_messages.hpp"
#include "tools/strata/nodes/agent_messages.hpp"

namespace {

using namespace strata::launch;
using namespace strata::launcher;

job_description some_job() {
  job_description job;
  job.job = 0x0123456789abcdef;
  for (std::size_t i = 0; i < job.key.size(); ++i) job.key[i] = static_cast<std::uint8_t>(255 - i);
  job.node = 2;
  job.nodes = 3;
  job.founders = 2;
  job.capacity = 9;
  job.elastic = job.late = true;
  job.left = {1};
  job.host_of = {0, 0, 7};
  job.cpus = {1, 5, 1023};
  job.workers = 3;
  job.transport = transport_choice::shm_udp;
  job.bind_address = "fe80::1%eth0";
  job.shared_memory = 12;
  job.start_limit_ns = 30'000'000'000;
  return job;
}

start_request some_start() {
  start_request what;
  what.program = "/a b/c";
  what.arguments = {"c", "", std::string("x\0y", 3)};
  what.variables = {"A=1", "B="};
  what.directory = "/tmp";
  what.job = some_job();
  what.nodes = {0, 2};
  what.workers = 5;
  what.bind = false;
  what.print_binding = true;
  what.capture_output = true;
  what.expected = 4;
  return what;
}

frame only_frame(const std::string& bytes) {
  frame_reader reader;
  reader.add(bytes);
  auto f = reader.next();
  if (!f || !reader.rest().empty()) throw std::logic_error("not one frame");
  return *f;
}

void expect_same(const job_description& a, const job_description& b) {
  EXPECT_EQ(a.job, b.job);
  EXPECT_EQ(a.key, b.key);
  EXPECT_EQ(a.node, b.node);
  EXPECT_EQ(a.nodes, b.nodes);
  EXPECT_EQ(a.founders, b.founders);
  EXPECT_EQ(a.capacity, b.capacity);
  EXPECT_EQ(a.elastic, b.elastic);
  EXPECT_EQ(a.late, b.late);
  EXPECT_EQ(a.left, b.left);
  EXPECT_EQ(a.host_of, b.host_of);
  EXPECT_EQ(a.cpus, b.cpus);
  EXPECT_EQ(a.workers, b.workers);
  EXPECT_EQ(a.transport, b.transport);
  EXPECT_EQ(a.bind_address, b.bind_address);
  EXPECT_EQ(a.shared_memory, b.shared_memory);
  EXPECT_EQ(a.start_limit_ns, b.start_limit_ns);
}

TEST(frames, welcome_comes_out_as_it_went_in) {
  const frame f = only_frame(pack_welcome(some_job()));
  EXPECT_EQ(f.kind, frame_kind::welcome);
  expect_same(unpack_welcome(f.payload), some_job());
  expect_same(unpack_welcome(only_frame(pack_welcome([] {
                               job_description alone;
                               alone.host_of = {0};
                               return alone;
                             }()))
                                 .payload),
              [] {
                job_description alone;
                alone.host_of = {0};
                return alone;
              }());
}

TEST(frames, the_other_messages_come_out_as_they_went_in) {
  const auto reachable =
      unpack_reachable(only_frame(pack_reachable({"0a1b", {"10.0.0.1", 65535}})).payload);
  EXPECT_EQ(reachable.build_id, "0a1b");
  EXPECT_EQ(reachable.where.host, "10.0.0.1");
  EXPECT_EQ(reachable.where.port, 65535);
  const auto admit = unpack_admit(only_frame(pack_admit({8, 3, {"10.0.0.1", 65535}})).payload);
  EXPECT_EQ(admit.node, 8);
  EXPECT_EQ(admit.host, 3);
  EXPECT_EQ(admit.where.port, 65535);
  const frame word = only_frame(pack_word(word_to_launcher::admitted, 7));
  EXPECT_EQ(word.kind, frame_kind::admitted);
  EXPECT_EQ(unpack_node(word.payload), 7);
  EXPECT_EQ(only_frame(pack_order(frame_kind::go)).kind, frame_kind::go);
  const auto directory = unpack_directory(
      only_frame(pack_directory(
                     {{"a", 1},
                      {"::1", 2, std::string("\0w", 2), {{"", 0, 0}, {"b", 3, 100, 4, "v", "s"}}}}))
          .payload);
  ASSERT_EQ(directory.size(), 2U);
  EXPECT_TRUE(directory[0].doors.empty());
  ASSERT_EQ(directory[1].doors.size(), 2U);
  EXPECT_EQ(directory[1].doors[0].port, 0);
  EXPECT_EQ(directory[1].doors[1].host, "b");
  EXPECT_EQ(directory[1].doors[1].port, 3);
  EXPECT_EQ(directory[1].doors[1].megabits, 100U);
  EXPECT_EQ(directory[1].doors[1].spare_port, 4);
  EXPECT_EQ(directory[1].doors[1].worker, "v");
  EXPECT_EQ(directory[1].doors[1].spare_worker, "s");
  EXPECT_EQ(directory[1].doors[0].worker, "");
  EXPECT_EQ(directory[1].host, "::1");
  EXPECT_EQ(directory[1].port, 2);
  EXPECT_EQ(directory[1].worker, std::string("\0w", 2));
  const auto lost = unpack_lost(only_frame(pack_lost({9, "was killed"})).payload);
  EXPECT_EQ(lost.node, 9);
  EXPECT_EQ(lost.why, "was killed");
  EXPECT_EQ(only_frame(pack_finished()).kind, frame_kind::finished);
}

const std::vector<std::vector<measured_link>> some_measurements{
    {{1, 0, 30, 60}, {2, 3, 0, measured_link::unknown}}, {}, {{0, 1023, 80, 0}}};

TEST(frames, measurements_come_out_as_they_went_in) {
  const frame mine = only_frame(pack_measured(some_measurements[0]));
  EXPECT_EQ(mine.kind, frame_kind::measured);
  const frame all = only_frame(pack_measurements(some_measurements));
  EXPECT_EQ(all.kind, frame_kind::measurements);
  auto unpacked = unpack_measurements(all.payload);
  unpacked.push_back(unpack_measured(mine.payload));
  auto expected = some_measurements;
  expected.push_back(some_measurements[0]);
  EXPECT_EQ(unpacked, expected);
}

const std::vector<closed_link> some_closed{{0, 1, 0}, {0, 65535, 1023}};

TEST(frames, closed_networks_come_out_as_they_went_in) {
  for (const frame_kind kind : {frame_kind::closed, frame_kind::all_closed}) {
    const frame f = only_frame(pack_closed(kind, some_closed));
    EXPECT_EQ(f.kind, kind);
    EXPECT_EQ(unpack_closed(f.payload), some_closed);
  }
  for (const closed_link& c :
       {closed_link{1, 1, 0}, {2, 1, 0}, {0, 1, measured_link::networks_max}}) {
    EXPECT_THROW(unpack_closed(only_frame(pack_closed(frame_kind::closed, {c})).payload),
                 strata::error);
  }
}

TEST(frames, measurements_that_no_node_can_have_made_are_refused) {
  for (const measured_link& m : {measured_link{1, measured_link::networks_max, 1, 1},
                                 {1, 65535, 1, 1},
                                 {1, 0, measured_link::step_max + 1, 1},
                                 {1, 0, measured_link::unknown, 1},
                                 {1, 0, 1, measured_link::step_max + 1},
                                 {1, 0, 1, 254}}) {
    EXPECT_THROW(unpack_measured(only_frame(pack_measured({m})).payload), strata::error);
    EXPECT_THROW(unpack_measurements(only_frame(pack_measurements({{}, {m}})).payload),
                 strata::error);
  }
  for (const std::string_view many :
       {std::string_view("\xff\xff\xff\xff", 4), std::string_view("\0\0\0\x80", 4)}) {
    EXPECT_THROW(unpack_measured(many), strata::error);
    EXPECT_THROW(unpack_measurements(many), strata::error);
  }
}

TEST(frames, messages_of_agents_come_out_as_they_went_in) {
  const start_request what = unpack_start(only_frame(pack_start(some_start())).payload);
  EXPECT_EQ(what.program, "/a b/c");
  EXPECT_EQ(what.arguments, some_start().arguments);
  EXPECT_EQ(what.variables, some_start().variables);
  EXPECT_EQ(what.directory, "/tmp");
  expect_same(what.job, some_job());
  EXPECT_EQ(what.nodes, some_start().nodes);
  EXPECT_EQ(what.workers, 5U);
  EXPECT_FALSE(what.bind);
  EXPECT_TRUE(what.print_binding);
  EXPECT_TRUE(what.capture_output);
  EXPECT_EQ(what.expected, 4U);
  const auto relay = unpack_relay(only_frame(pack_relay(3, pack_lost({1, "x"}))).payload);
  EXPECT_EQ(relay.node, 3);
  EXPECT_EQ(unpack_lost(relay.inner.payload).why, "x");
  const auto ended = unpack_ended(only_frame(pack_ended({3, {true, 9}})).payload);
  EXPECT_EQ(ended.node, 3);
  EXPECT_TRUE(ended.how.signalled);
  EXPECT_EQ(ended.how.status(), 137);
  const auto output = unpack_output(only_frame(pack_output(1, output_stream::err, "ab")).payload);
  EXPECT_EQ(output.stream, output_stream::err);
  EXPECT_EQ(output.bytes, "ab");
  for (const frame_kind kind : {frame_kind::input_taken, frame_kind::output_taken}) {
    const frame taken = only_frame(pack_taken(kind, 70'000));
    EXPECT_EQ(taken.kind, kind);
    EXPECT_EQ(unpack_taken(taken.payload), 70'000U);
  }
  EXPECT_EQ(unpack_signal(only_frame(pack_signal(15)).payload), 15);
  EXPECT_EQ(unpack_note(only_frame(pack_note("n")).payload), "n");
  EXPECT_TRUE(unpack_refused(only_frame(pack_refused({true, "no"})).payload).user);
  EXPECT_EQ(unpack_line_ended(only_frame(pack_line_ended({4, "why"})).payload).why, "why");
}

TEST(frames, messages_of_the_users_commands_come_out_as_they_went_in) {
  EXPECT_EQ(only_frame(pack_ask_status()).kind, frame_kind::ask_status);
  const auto status = unpack_status(only_frame(pack_status({"prog", "0-2,4", 77})).payload);
  EXPECT_EQ(status.program, "prog");
  EXPECT_EQ(status.nodes, "0-2,4");
  EXPECT_EQ(status.launcher, 77U);
  const auto join = unpack_ask_join(only_frame(pack_ask_join({2, 3, "u@b", "::1"})).payload);
  EXPECT_EQ(join.nodes, 2U);
  EXPECT_EQ(join.workers, 3U);
  EXPECT_EQ(join.host, "u@b");
  EXPECT_EQ(join.address, "::1");
  for (const auto& [bytes, kind] : {std::pair{pack_joined(4), frame_kind::joined},
                                    {pack_ask_leave(4), frame_kind::ask_leave},
                                    {pack_left(4), frame_kind::left}}) {
    EXPECT_EQ(only_frame(bytes).kind, kind);
    EXPECT_EQ(unpack_node(only_frame(bytes).payload), 4);
  }
  EXPECT_EQ(unpack_denied(only_frame(pack_denied("no")).payload), "no");
  // Whatever is to be told, what tells it can be read.
  const std::string endless(1 << 20, 'x');
  EXPECT_FALSE(unpack_denied(only_frame(pack_denied(endless)).payload).empty());
  EXPECT_FALSE(unpack_status(only_frame(pack_status({endless, endless, 1})).payload).nodes.empty());
}

TEST(frames, requests_that_nobody_would_make_are_refused) {
  for (const join_request& what : {join_request{.nodes = 0},
                                   {.nodes = 5000},
                                   {.workers = 5000},
                                   {.host = "-oProxyCommand=x"},
                                   {.host = "a b"},
                                   {.host = std::string(2000, 'a')}}) {
    EXPECT_THROW(unpack_ask_join(only_frame(pack_ask_join(what)).payload), strata::error);
  }
}

TEST(frames, a_reader_may_be_content_with_short_ones) {
  frame_reader reader(4);
  reader.add(pack_frame(frame_kind::note, "abcd"));
  EXPECT_TRUE(reader.next());
  reader.add(pack_frame(frame_kind::note, "abcde").substr(0, 8));
  EXPECT_THROW(reader.next(), strata::error);
}

TEST(frames, arrive_in_any_pieces) {
  const std::string bytes = pack_lost({1, "first"}) + pack_finished() + pack_lost({2, "second"});
  frame_reader reader;
  std::vector<frame> frames;
  for (const char c : bytes) {
    reader.add({&c, 1});
    while (auto f = reader.next()) frames.push_back(*f);
  }
  ASSERT_EQ(frames.size(), 3U);
  EXPECT_EQ(unpack_lost(frames[0].payload).why, "first");
  EXPECT_EQ(frames[1].kind, frame_kind::finished);
  EXPECT_EQ(unpack_lost(frames[2].payload).node, 2);
}

TEST(frames, another_version_is_named) {
  std::string bytes = pack_finished();
  bytes[2] = static_cast<char>(line_version + 1);
  frame_reader reader;
  reader.add(bytes);
  try {
    reader.next();
    FAIL();
  } catch (const strata::error& problem) {
    EXPECT_NE(std::string(problem.what()).find("version " + std::to_string(line_version + 1)),
              std::string::npos)
        << problem.what();
  }
}

TEST(frames, garbage_and_hostile_lengths_are_refused_before_they_cost_memory) {
  for (const std::string& bytes : {std::string("GET / HTTP/1.1"), std::string("X"),
                                   std::string("SL\x02\x05\xff\xff\xff\xff", 8)}) {
    frame_reader reader;
    reader.add(bytes);
    EXPECT_THROW(reader.next(), strata::error) << bytes;
  }
  // A vector that claims four billion elements.
  EXPECT_THROW(unpack_directory(std::string("\xff\xff\xff\xff", 4)), strata::error);
  EXPECT_THROW(unpack_lost(std::string("\0\0\xff\xff\xff\xff", 6)), strata::error);
}

const std::vector<std::function<void(std::string_view)>>& every_unpack() {
  using payload = std::string_view;
  static const std::vector<std::function<void(payload)>> all{
      [](payload p) { unpack_welcome(p); },      [](payload p) { unpack_reachable(p); },
      [](payload p) { unpack_directory(p); },    [](payload p) { unpack_lost(p); },
      [](payload p) { unpack_start(p); },        [](payload p) { unpack_relay(p); },
      [](payload p) { unpack_ended(p); },        [](payload p) { unpack_line_ended(p); },
      [](payload p) { unpack_output(p); },       [](payload p) { unpack_signal(p); },
      [](payload p) { unpack_note(p); },         [](payload p) { unpack_refused(p); },
      [](payload p) { unpack_admit(p); },        [](payload p) { unpack_node(p); },
      [](payload p) { unpack_status(p); },       [](payload p) { unpack_ask_join(p); },
      [](payload p) { unpack_denied(p); },       [](payload p) { unpack_measured(p); },
      [](payload p) { unpack_measurements(p); }, [](payload p) { unpack_closed(p); },
      [](payload p) { unpack_found(p); },        [](payload p) { unpack_all_found(p); }};
  return all;
}

TEST(frames, finds_come_out_as_they_went_in) {
  const frame one = only_frame(pack_found("some"));
  EXPECT_EQ(one.kind, frame_kind::found);
  EXPECT_EQ(unpack_found(one.payload), "some");
  const frame all = only_frame(pack_all_found({"some", "", "more"}));
  EXPECT_EQ(all.kind, frame_kind::all_found);
  EXPECT_EQ(unpack_all_found(all.payload), (std::vector<std::string>{"some", "", "more"}));
  const std::string much(found_bytes_max, 'x');
  EXPECT_EQ(unpack_found(much), much);
  EXPECT_THROW(unpack_found(much + "x"), strata::error);
  EXPECT_THROW(unpack_all_found(only_frame(pack_all_found({much + "x"})).payload), strata::error);
}

TEST(frames, a_payload_cut_anywhere_or_too_long_is_refused) {
  const auto whole = [](const std::string& bytes) { return only_frame(bytes).payload; };
  const auto try_all = [](const std::string& payload,
                          const std::function<void(std::string_view)>& unpack) {
    for (std::size_t bytes = 0; bytes < payload.size(); ++bytes) {
      // A copy of exactly this size: a sanitizer sees a read beyond it.
      const std::vector<char> cut(payload.begin(),
                                  payload.begin() + static_cast<std::ptrdiff_t>(bytes));
      EXPECT_THROW(unpack({cut.data(), cut.size()}), strata::error) << bytes;
    }
    EXPECT_THROW(unpack(payload + "x"), strata::error);
  };
  try_all(whole(pack_welcome(some_job())), every_unpack()[0]);
  try_all(whole(pack_reachable({"id", {"h", 1, "w"}})), every_unpack()[1]);
  try_all(whole(pack_directory({{"h", 1}, {"i", 2}})), every_unpack()[2]);
  try_all(whole(pack_lost({1, "why"})), every_unpack()[3]);
  try_all(whole(pack_missed({1, "why"})), every_unpack()[3]);
  try_all(whole(pack_start(some_start())), every_unpack()[4]);
  try_all(whole(pack_ended({1, {}})), every_unpack()[6]);
  try_all(whole(pack_admit({8, 3, {"h", 1}})), every_unpack()[12]);
  try_all(whole(pack_word(word_to_launcher::entered, 7)), every_unpack()[13]);
  try_all(whole(pack_status({"prog", "0-1", 7})), every_unpack()[14]);
  try_all(whole(pack_ask_join({1, 2, "host", "::1"})), every_unpack()[15]);
  try_all(whole(pack_denied("why")), every_unpack()[16]);
  try_all(whole(pack_measured(some_measurements[0])), every_unpack()[17]);
  try_all(whole(pack_measurements(some_measurements)), every_unpack()[18]);
  try_all(whole(pack_closed(frame_kind::closed, some_closed)), every_unpack()[19]);
  try_all(whole(pack_all_found({"one", "", "two"})), every_unpack()[21]);
}

TEST(frames, whatever_arrives_is_a_message_or_an_error) {
  std::mt19937_64 random = launch_test::seeded_random();
  const std::vector<std::string> valid{pack_welcome(some_job()),
                                       pack_reachable({"id", {"h", 1}}),
                                       pack_directory({{"h", 1}}),
                                       pack_lost({1, "why"}),
                                       pack_start(some_start()),
                                       pack_relay(1, pack_finished()),
                                       pack_admit({8, 3, {"h", 1}}),
                                       pack_status({"prog", "0-1", 7}),
                                       pack_ask_join({1, 2, "host", "::1"}),
                                       pack_denied("why"),
                                       pack_measured(some_measurements[0]),
                                       pack_measurements(some_measurements),
                                       pack_closed(frame_kind::closed, some_closed),
                                       pack_found("one"),
                                       pack_all_found({"one", "", "two"})};
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes = round % 4 == 0 ? launch_test::random_bytes(random, random() % 64)
                                       : valid[random() % valid.size()];
    for (std::uint64_t changes = random() % 4; changes > 0 && !bytes.empty(); --changes) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    bytes.resize(bytes.size() - (bytes.empty() ? 0 : random() % 2));
    try {
      frame_reader reader;
      reader.add(bytes);
      while (const auto f = reader.next()) {
        for (const auto& unpack : every_unpack()) {
          try {
            unpack(f->payload);
          } catch (const strata::error&) {
          }
        }
      }
    } catch (const strata::error&) {
    }
  }
}

}  // namespace
