// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <future>
#include <optional>
#include <random>
#include <thread>

#include "closed_door.hpp"
#include "launch/job.hpp"
#include "net/tcp/mesh.hpp"
#include "net/tcp/tcp_transport.hpp"
#include "os/clock.hpp"
#include "strata/error.hpp"
#include "transport_support.hpp"

namespace strata::net::test {
namespace {

using sockets = std::vector<os::descriptor>;
constexpr std::int64_t second_ns = 1'000'000'000;
constexpr std::int64_t patience_ns = 60 * second_ns;

struct member {
  tcp::identity me;
  std::optional<tcp::listener> at;
  tcp::mesh_options options;
};

class tcp_mesh : public testing::Test {
 protected:
  void add(node_id nodes) {
    for (node_id n = 0; n < nodes; ++n) {
      member m;
      m.me.job = 77;
      m.me.key.fill(9);
      m.me.node = n;
      m.me.nodes = nodes;
      m.me.build_id = "0123abcd";
      m.at.emplace("127.0.0.1", std::uint16_t{0}, std::size_t{0});
      directory_.push_back(m.at->address());
      members_.push_back(std::move(m));
    }
  }
  std::future<sockets> join(node_id n, std::int64_t limit_ns = patience_ns) {
    return std::async(std::launch::async, [this, n, limit_ns] {
      member& m = members_[n];
      return tcp::connect_mesh(m.me, {&*m.at, 1}, directory_, os::now_ns() + limit_ns, m.options);
    });
  }
  static std::string failure_of(std::future<sockets>& f) {
    try {
      f.get();
    } catch (const error& e) {
      return e.what();
    }
    ADD_FAILURE() << "joined";
    return "";
  }
  // What is thrown where node 1 joins as somebody else.
  template <class Error>
  std::string why_it_cannot_be(const tcp::identity& somebody) {
    try {
      tcp::connect_mesh(somebody, {&*members_[1].at, 1}, directory_, os::now_ns() + patience_ns,
                        {});
    } catch (const Error& e) {
      return e.what();
    }
    ADD_FAILURE() << "joined";
    return "";
  }
  void expect_messages(std::vector<sockets> all) {
    std::vector<std::unique_ptr<tcp::tcp_transport>> nodes;
    for (node_id n = 0; n < all.size(); ++n) {
      nodes.push_back(std::make_unique<tcp::tcp_transport>(n, std::move(all[n]), tcp::options{}));
    }
    for (node_id i = 0; i < nodes.size(); ++i) {
      for (node_id j = 0; j < nodes.size(); ++j) {
        if (i == j) continue;
        ASSERT_TRUE(nodes[i]->reaches(j));
        send_patiently(*nodes[i], i, j, content(i, 0, mixed_size(0)));
      }
    }
    for (node_id i = 0; i < nodes.size(); ++i) {
      checking_receiver r(i);
      r.receive(*nodes[i], nodes.size() - 1);
      EXPECT_EQ(r.received.size(), nodes.size() - 1);
    }
  }
  void expect_all_join() {
    std::vector<std::future<sockets>> joining;
    for (node_id n = 0; n < members_.size(); ++n) joining.push_back(join(n));
    std::vector<sockets> all;
    for (auto& f : joining) all.push_back(f.get());
    expect_messages(std::move(all));
  }
  void nobody_listens_at(node_id n) {
    members_[n].at.reset();
    directory_[n] = nobodys_.address();
  }
  os::descriptor connect_to_node(node_id n) { return tcp::connect_to(directory_[n], 0); }

  std::vector<member> members_;
  std::vector<launch::address> directory_;
  const closed_door nobodys_;
};

// News that are there before, and news that come while the others are waited for.
TEST_F(tcp_mesh, ends_with_what_the_news_make_of_it) {
  add(3);
  members_[2].options.on_news = [] { throw node_lost_error(1, "node 1 is lost: early"); };
  std::future<sockets> early = join(2);
  EXPECT_EQ(failure_of(early), "node 1 is lost: early");

  std::array<int, 2> line{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, line.data()), 0);
  const os::descriptor reading(line[0]), writing(line[1]);
  std::promise<void> looked;
  unsigned times = 0;
  members_[0].options.news = reading.get();
  members_[0].options.on_news = [&] {
    if (++times == 1) return looked.set_value();
    throw node_lost_error(1, "node 1 is lost: late");
  };
  std::future<sockets> late = join(0);
  looked.get_future().wait();
  ASSERT_EQ(::send(writing.get(), "x", 1, MSG_NOSIGNAL), 1);
  EXPECT_EQ(failure_of(late), "node 1 is lost: late");
}

TEST_F(tcp_mesh, one_node_needs_nobody) {
  add(1);
  EXPECT_EQ(join(0).get().size(), 1u);
}

TEST_F(tcp_mesh, all_pairs_are_connected) {
  add(6);
  expect_all_join();
}

TEST_F(tcp_mesh, nodes_that_are_reached_otherwise_are_left_out) {
  add(4);
  directory_[1].port = 0;
  directory_[2].port = 0;
  std::vector<std::future<sockets>> joining;
  joining.push_back(join(0));
  joining.push_back(join(3));
  const sockets of0 = joining[0].get();
  const sockets of3 = joining[1].get();
  EXPECT_TRUE(of0[3]);
  EXPECT_TRUE(of3[0]);
  EXPECT_FALSE(of0[1] || of0[2] || of3[1] || of3[2]);
}

TEST_F(tcp_mesh, identity_follows_from_the_job) {
  launch::job_description job;
  job.job = 5;
  job.key.fill(3);
  job.node = 2;
  job.nodes = 5;
  job.capacity = 7;
  const tcp::identity me = tcp::identity_in(job, std::string(100, 'a'));
  EXPECT_EQ(me.job, 5u);
  EXPECT_EQ(me.key, job.key);
  EXPECT_EQ(me.node, 2);
  EXPECT_EQ(me.nodes, 7);
  EXPECT_EQ(me.build_id.size(), tcp::build_id_bytes_max);
}

// Hundreds of strangers at every listener, before and while the nodes join.
TEST_F(tcp_mesh, strangers_do_not_disturb) {
  const auto seed = std::random_device{}();
  std::printf("seed %u\n", seed);
  add(4);
  for (member& m : members_) m.options.strangers_max = 32;
  std::vector<os::descriptor> silent;
  for (int i = 0; i < 100; ++i) silent.push_back(connect_to_node(static_cast<node_id>(i % 4)));
  std::atomic<bool> over{false};
  std::thread strangers([&] {
    std::mt19937 random(seed);
    std::vector<os::descriptor> held;
    while (!over.load()) {
      os::descriptor s;
      try {
        s = connect_to_node(static_cast<node_id>(random() % 4));
      } catch (const error&) {
        continue;
      }
      std::string said(random() % 300, '\0');
      for (char& c : said) c = static_cast<char>(random());
      if (random() % 3 == 0) said.insert(0, "STRATA\n1");
      if (random() % 3 == 0) said.resize(random() % 8);
      (void)::send(s.get(), said.data(), said.size(), MSG_NOSIGNAL);
      if (random() % 2 == 0) held.push_back(std::move(s));
      if (held.size() > 100) held.clear();
    }
  });
  expect_all_join();
  over.store(true);
  strangers.join();
}

TEST_F(tcp_mesh, silent_connections_are_closed) {
  add(2);
  members_[0].options.stranger_limit_ns = second_ns / 2;
  const os::descriptor silent = connect_to_node(0);
  auto waiting = join(0);
  pollfd closed{silent.get(), POLLIN, 0};
  ::poll(&closed, 1, -1);  // by us? it says nothing, so its end is all that can come
  char c;
  EXPECT_LE(::recv(silent.get(), &c, 1, 0), 0);
  auto other = join(1);
  EXPECT_TRUE(other.get()[0]);
  EXPECT_TRUE(waiting.get()[1]);
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Among those who were waited for in vain.
bool names(const std::string& failure, const std::string& node) {
  return contains(failure.substr(failure.find("in vain for ")), node);
}

TEST_F(tcp_mesh, the_deadline_names_who_is_missing) {
  add(4);
  std::string of0, of3;
  // A machine that needs longer for the two who come gets longer.
  for (std::int64_t limit_ns = 2 * second_ns;; limit_ns *= 2) {
    ASSERT_LT(limit_ns, patience_ns) << of0 << "\n" << of3;
    auto f0 = join(0, limit_ns), f3 = join(3, limit_ns);
    of0 = failure_of(f0);
    of3 = failure_of(f3);
    if (!names(of0, "node 3") && !names(of3, "node 0")) break;
  }
  EXPECT_NE(of0.find("waited in vain for node 1, node 2:"), std::string::npos) << of0;
  EXPECT_NE(of3.find("node 1 (" + tcp::text_of(directory_[1]) + " does not answer)"),
            std::string::npos)
      << of3;
}

TEST_F(tcp_mesh, many_missing_nodes_are_counted) {
  add(20);
  auto f0 = join(0, second_ns / 100);
  EXPECT_NE(failure_of(f0).find("node 8 and 11 more"), std::string::npos);
}

TEST_F(tcp_mesh, nobody_listens) {
  add(2);
  nobody_listens_at(0);
  auto f1 = join(1);
  const std::string why = failure_of(f1);
  EXPECT_NE(why.find("cannot join node 0"), std::string::npos) << why;
  EXPECT_NE(why.find("Connection refused"), std::string::npos) << why;
}

TEST_F(tcp_mesh, another_key_is_refused_and_the_job_goes_on) {
  add(2);
  std::atomic<int> refused{0};
  members_[0].options.on_refused = [&](const std::string&, tcp::refusal why, const std::string&) {
    if (why == tcp::refusal::wrong_key) ++refused;
  };
  auto f0 = join(0);
  tcp::identity wrong = members_[1].me;
  wrong.key[5] ^= 1;
  EXPECT_NE(why_it_cannot_be<error>(wrong).find("is that a node of this job?"), std::string::npos);
  EXPECT_GT(refused.load(), 0);
  auto f1 = join(1);
  EXPECT_TRUE(f1.get()[0]);
  EXPECT_TRUE(f0.get()[1]);
}

TEST_F(tcp_mesh, another_build_hears_why_and_the_job_goes_on) {
  add(2);
  auto f0 = join(0);
  tcp::identity wrong = members_[1].me;
  wrong.build_id = "ffff";
  const std::string why = why_it_cannot_be<user_error>(wrong);
  EXPECT_NE(why.find("runs another build (0123abcd), this node ffff"), std::string::npos) << why;
  auto f1 = join(1);
  EXPECT_TRUE(f1.get()[0]);
  EXPECT_TRUE(f0.get()[1]);
}

TEST_F(tcp_mesh, a_refused_build_is_the_reason_that_a_node_is_missing) {
  add(2);
  members_[1].me.build_id = "ffff";
  std::string why;
  // A machine on which that one comes too late gets longer.
  for (std::int64_t limit_ns = 2 * second_ns; !contains(why, "runs another build (ffff)");
       limit_ns *= 2) {
    ASSERT_LT(limit_ns, patience_ns) << why;
    auto f0 = join(0, limit_ns), f1 = join(1, limit_ns);
    failure_of(f1);
    why = failure_of(f0);
  }
}

// Says what a node says when it joins; returns how that ended.
tcp::handshake join_by_hand(const tcp::identity& me, node_id peer, const os::descriptor& s) {
  auto talk = tcp::handshake::connector(me, peer, tcp::fresh_nonce());
  while (talk.now() == tcp::handshake::state::talking) {
    const auto out = talk.outgoing();
    pollfd ready{s.get(), static_cast<short>(out.empty() ? POLLIN : POLLOUT), 0};
    ::poll(&ready, 1, -1);
    if (!out.empty()) {
      const ssize_t n = ::send(s.get(), out.data(), out.size(), MSG_NOSIGNAL);
      if (n > 0) talk.sent(static_cast<std::size_t>(n));
      continue;
    }
    std::array<std::byte, 256> bytes;
    const ssize_t n = ::recv(s.get(), bytes.data(), talk.wanted(), 0);
    if (n <= 0) break;
    talk.received(std::span(bytes).first(static_cast<std::size_t>(n)));
  }
  return talk;
}

TEST_F(tcp_mesh, a_node_that_comes_twice_is_refused_the_second_time) {
  add(3);
  auto f0 = join(0);
  const os::descriptor first = connect_to_node(0);
  EXPECT_EQ(join_by_hand(members_[1].me, 0, first).now(), tcp::handshake::state::joined);
  const os::descriptor second = connect_to_node(0);
  const auto talk = join_by_hand(members_[1].me, 0, second);
  EXPECT_EQ(talk.reason(), tcp::refusal::duplicate_node);
  EXPECT_NE(talk.explanation().find("node 1 has joined already"), std::string::npos);
  const os::descriptor third = connect_to_node(0);
  EXPECT_EQ(join_by_hand(members_[2].me, 0, third).now(), tcp::handshake::state::joined);
  const sockets all = f0.get();
  EXPECT_TRUE(all[1]);
  EXPECT_TRUE(all[2]);
}

// What follows the handshake at once belongs to the messages.
TEST_F(tcp_mesh, bytes_behind_the_handshake_stay_in_the_socket) {
  add(3);
  auto f0 = join(0);
  const os::descriptor first = connect_to_node(0);
  EXPECT_EQ(join_by_hand(members_[1].me, 0, first).now(), tcp::handshake::state::joined);
  EXPECT_EQ(::send(first.get(), "hello", 5, MSG_NOSIGNAL), 5);
  const os::descriptor second = connect_to_node(0);
  EXPECT_EQ(join_by_hand(members_[2].me, 0, second).now(), tcp::handshake::state::joined);
  const sockets all = f0.get();
  pollfd ready{all[1].get(), POLLIN, 0};
  ::poll(&ready, 1, -1);
  char text[8] = {};
  EXPECT_EQ(::recv(all[1].get(), text, sizeof text, 0), 5);
  EXPECT_STREQ(text, "hello");
}

// Its time passes while it is waited for. For so many connections the system has no descriptor.
class poor_ground final : public tcp::mesh_ground {
 public:
  explicit poor_ground(unsigned refused) : refused_(refused) {}
  std::int64_t now_ns() override { return now_ns_; }
  os::descriptor connect(const launch::address& to, std::size_t buffer_bytes) override {
    rlimit before{};
    ::getrlimit(RLIMIT_NOFILE, &before);
    const rlimit none{0, before.rlim_max};
    if (has_nothing()) ::setrlimit(RLIMIT_NOFILE, &none);
    try {
      os::descriptor s = tcp::connect_to(to, buffer_bytes);
      ::setrlimit(RLIMIT_NOFILE, &before);
      return s;
    } catch (...) {
      ::setrlimit(RLIMIT_NOFILE, &before);
      throw;
    }
  }
  // Then one comes who says nothing.
  os::descriptor accept(int, std::string& from) override {
    errno = has_nothing() ? EMFILE : EAGAIN;
    if (errno == EMFILE || stranger_) return {};
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()), 0);
    stranger_ = os::descriptor(ends[0]);
    from = "somebody";
    return os::descriptor(ends[1]);
  }
  int wait(std::span<pollfd> what, std::int64_t limit_ns) override {
    int ready = ::poll(what.data(), what.size(), 0);
    for (pollfd& one : what) {
      if (one.fd != door || stranger_) continue;
      one.revents = POLLIN;
      ++ready;
    }
    if (ready == 0) now_ns_ += limit_ns;
    return ready;
  }
  int door = -2;  // somebody knocks there

 private:
  bool has_nothing() { return refused_ != 0 && refused_-- != 0; }

  unsigned refused_;
  std::int64_t now_ns_ = 1;
  os::descriptor stranger_;
};

constexpr unsigned always = 1'000'000;

class tcp_mesh_without_descriptors : public tcp_mesh {
 protected:
  // Empty: it has left the other one out.
  std::string trouble_of(node_id n, poor_ground& ground, std::string& left_out) {
    member& m = members_[n];
    m.options.ground = &ground;
    m.options.partial = true;
    m.options.on_left_out = [&](node_id, const std::string& why) { left_out = why; };
    nobody_listens_at(static_cast<node_id>(1U - n));
    try {
      (void)tcp::connect_mesh(m.me, {&*m.at, 1}, directory_, 3 * second_ns, m.options);
    } catch (const error& e) {
      return e.what();
    }
    return {};
  }
};

TEST_F(tcp_mesh_without_descriptors, whom_a_node_cannot_connect_to_is_not_left_out) {
  poor_ground ground(always);
  add(2);
  std::string left_out = "nobody";
  EXPECT_EQ(trouble_of(1, ground, left_out),
            "node 1 waited in vain for node 0 (cannot make a socket: Too many open files): not "
            "joined within the time limit; this node ran out of descriptors: raise ulimit -n");
  EXPECT_EQ(left_out, "nobody");
}

TEST_F(tcp_mesh_without_descriptors, who_cannot_be_reached_later_either_is_left_out) {
  poor_ground ground(20);
  add(2);
  std::string left_out;
  EXPECT_EQ(trouble_of(1, ground, left_out), "");
  EXPECT_NE(left_out.find("refused"), std::string::npos) << left_out;
}

TEST_F(tcp_mesh_without_descriptors, whom_a_node_cannot_accept_is_not_left_out) {
  poor_ground ground(always);
  add(2);
  ground.door = members_[0].at->get();
  std::string left_out = "nobody";
  const std::string why = trouble_of(0, ground, left_out);
  EXPECT_NE(why.find("; this node ran out of descriptors"), std::string::npos) << why;
  EXPECT_EQ(left_out, "nobody");
}

TEST_F(tcp_mesh_without_descriptors, who_does_not_come_later_either_is_left_out) {
  poor_ground ground(20);
  add(2);
  ground.door = members_[0].at->get();
  std::string left_out = "nobody";
  EXPECT_EQ(trouble_of(0, ground, left_out), "");
  EXPECT_EQ(left_out, "");  // nothing was heard of it
}

TEST(tcp_listener, tells_its_port) {
  const tcp::listener at("127.0.0.1", 0, 0);
  EXPECT_EQ(at.address().host, "127.0.0.1");
  EXPECT_NE(at.address().port, 0);
}

TEST(tcp_listener, a_port_that_is_taken) {
  const tcp::listener at("127.0.0.1", 0, 0);
  const std::uint16_t port = at.address().port;
  try {
    const tcp::listener second("127.0.0.1", port, 0);
    FAIL();
  } catch (const user_error& e) {
    EXPECT_NE(std::string(e.what()).find("127.0.0.1, port " + std::to_string(port)),
              std::string::npos);
  }
}

TEST(tcp_listener, an_address_that_is_none) {
  EXPECT_THROW(tcp::listener("example.invalid", 0, 0), user_error);
  EXPECT_THROW(tcp::connect_to({"", 1}, 0), user_error);
}

TEST(tcp_listener, version_6) {
  EXPECT_EQ(tcp::text_of({"::1", 4711}), "[::1]:4711");
  EXPECT_EQ(tcp::text_of({"127.0.0.1", 4711}), "127.0.0.1:4711");
}

}  // namespace
}  // namespace strata::net::test
