// SPDX-License-Identifier: Apache-2.0
// Messages between the nodes of a job; its last argument says what it does. Prints "ok" on node 0
// when all was as it should be, else what was not.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../common/require.hpp"
#include "../common/thread_states.hpp"
#include "program_asleep.hpp"
#include "program_calls.hpp"
#include "program_groups.hpp"
#include "program_huge.hpp"
#include "program_large.hpp"
#include "program_names.hpp"
#include "program_paths.hpp"
#include "program_registered.hpp"
#include "program_support.hpp"
#include "strata/message.hpp"
#include "strata/remote_thread.hpp"
#include "strata/resource.hpp"
#include "strata/runtime.hpp"
#include "strata/semaphore.hpp"
#include "strata/stats.hpp"
#include "strata/thread.hpp"

namespace {

using namespace strata;
using test::die;
using test::hello;
using test::is_now;
using test::last_node;
using test::pattern_of;
using test::require;

// ---- messages ----

// Sends back what it gets, until it gets nothing.
void echo(endpoint_id to) {
  endpoint& mine = this_thread::endpoint();
  mine.send_value(to, 0, mine.id());
  for (;;) {
    const message m = mine.receive_message(to);
    if (m.content.empty()) return;
    mine.send(to, m.tag, m.content);
  }
}

void echoes(runtime& rt) {
  rt.run([] {
    endpoint& mine = this_thread::endpoint();
    remote_thread other(on_node{last_node()}, call<echo>(mine.id()));
    const auto to = mine.receive_value<endpoint_id>();
    require(to.node() == last_node(), "where the other is");
    unsigned seed = 0;
    for (const std::size_t bytes :
         {1UL, 64UL, 16384UL, 16385UL, 65536UL, 65537UL, 1UL << 20, 9UL << 20}) {
      for (int i = 0; i < 3; ++i) {
        const std::vector<std::byte> out = pattern_of(bytes, ++seed);
        const transfer sends = mine.start_send(to, seed, out);
        std::vector<std::byte> in(bytes);
        const message_info m = mine.receive(in, to, seed);
        require(m.bytes == bytes && m.source == to, "what comes back");
        require(test::same(in, out), "the same bytes");
      }
    }
    // Elements, less than there is room for.
    for (const std::size_t n : {1UL, 1000UL}) {
      std::vector<double> out(n), in(n + 5, -1);
      for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<double>(i) / 4;
      transfer sends = mine.start_send(to, 0, std::span(out).first(n));
      const message_info m = mine.receive(in, to, 0);
      require(m.count_of<double>() == n, "how many elements");
      require(std::equal(out.begin(), out.end(), in.begin()) && in[n] == -1, "the same elements");
      sends.wait();
    }
    mine.send(to, 0, std::span<const std::byte>());
    other.join();
    try {
      // What comes too late for the first is known to the second.
      for (int i = 0; i < 1'000'000; ++i) mine.send_value(to, 0, i);
      require(false, "an endpoint that has ended");
    } catch (const endpoint_closed_error& e) {
      require(e.which() == to, "which has ended");
    }
    try {
      mine.start_synchronous_send(to, 0, bytes_of(1)).wait();
      require(false, "an endpoint that has ended, synchronously");
    } catch (const endpoint_closed_error&) {
    }
  });
}

// The receiver takes its time; the sender has to wait, and everything is there in the end.
constexpr int many = 3000;

void late(endpoint_id to) {
  endpoint& mine = this_thread::endpoint();
  mine.send_value(to, 0, mine.id());
  (void)mine.receive_message(any_endpoint, 1);  // the word to begin
  for (int i = 0; i < many; ++i) {
    const message m = mine.receive_message(to, 0);
    require(m.content ==
                pattern_of(static_cast<std::size_t>(i) * 11 % 20'000, static_cast<unsigned>(i)),
            "a message of a fast sender");
  }
}

void slow_receiver(runtime& rt) {
  rt.run([] {
    endpoint& mine = this_thread::endpoint();
    remote_thread other(on_node{last_node()}, call<late>(mine.id()));
    const auto to = mine.receive_value<endpoint_id>();
    std::atomic<int> sent{0};
    thread sender({.name = "sender"}, [&] {
      for (int i = 0; i < many; ++i) {
        mine.send(to, 0,
                  pattern_of(static_cast<std::size_t>(i) * 11 % 20'000, static_cast<unsigned>(i)));
        ++sent;
      }
    });
    // Once it waits for room it waits until we say the word. Should it never, it is through.
    while (sent < many && !is_now("sender", "waiting for room for a message")) this_thread::yield();
    require(sent < 2000, "the sender waits");
    endpoint().send_value(to, 1, 0);
    sender.join();
    other.join();
  });
}

// ---- many threads ----

constexpr int friends = 40;  // on each node
constexpr int messages_each = 250;

// All to all at random; `book` says who there is. Everybody hears from everybody how many to await.
void talk(endpoint_id book, std::uint32_t me) {
  endpoint& mine = this_thread::endpoint();
  mine.send_value(book, 1, hello{mine.id(), me});
  const message names = mine.receive_message(book, 2);
  std::vector<endpoint_id> all(names.content.size() / sizeof(endpoint_id));
  std::memcpy(all.data(), names.content.data(), names.content.size());
  std::minstd_rand random(me + 1);
  std::vector<std::uint32_t> sent(all.size()), seen(all.size());
  std::uint64_t awaited = 0, received = 0, told = 0;
  const auto take = [&] {
    const message m = mine.receive_message();
    std::uint32_t from = 0, number = 0;
    std::memcpy(&from, m.content.data(), sizeof(from));
    std::memcpy(&number, m.content.data() + sizeof(from), sizeof(number));
    if (m.tag == 4) {
      awaited += number;
      ++told;
    } else {
      require(m.tag == 3 && number == ++seen[from], "the order of a pair");
      ++received;
    }
  };
  for (int i = 0; i < messages_each; ++i) {
    const std::uint32_t to = static_cast<std::uint32_t>(random() % all.size());
    std::vector<std::byte> bytes(8 + random() % (random() % 32 == 0 ? 30'000 : 64));
    const std::uint32_t number = ++sent[to];
    std::memcpy(bytes.data(), &me, sizeof(me));
    std::memcpy(bytes.data() + sizeof(me), &number, sizeof(number));
    transfer sends = mine.start_send(all[to], 3, bytes);
    while (!sends.test()) {
      if (mine.probe()) take();
      this_thread::yield();
    }
    sends.wait();
    while (mine.probe()) take();
  }
  std::vector<std::array<std::uint32_t, 2>> totals;
  for (std::size_t i = 0; i < all.size(); ++i) totals.push_back({me, sent[i]});
  std::vector<transfer> sends;
  for (std::size_t i = 0; i < all.size(); ++i)
    sends.push_back(mine.start_send(all[i], 4, bytes_of(totals[i])));
  while (told != all.size() || received != awaited) take();
  wait_all(sends);
  mine.send_value(book, 5, received);
  // Nobody ends while others may still send to it.
  (void)mine.receive_message(book, 6);
}

void crowd(runtime& rt) {
  rt.run([] {
    endpoint& book = this_thread::endpoint();
    std::vector<remote_thread> threads;
    std::uint32_t count = 0;
    for (unsigned n = 0; n < num_nodes(); ++n) {
      for (int i = 0; i < friends; ++i)
        threads.emplace_back(on_node{static_cast<node_id_t>(n)}, call<talk>(book.id(), count++));
    }
    std::vector<endpoint_id> all(count);
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto h = book.receive_value<hello>(any_endpoint, 1);
      all[h.number] = h.who;
    }
    for (const endpoint_id e : all) book.send(e, 2, bytes_of(all));
    std::uint64_t received = 0;
    for (std::uint32_t i = 0; i < count; ++i)
      received += book.receive_value<std::uint64_t>(any_endpoint, 5);
    require(received == std::uint64_t{count} * messages_each, "everything arrives once");
    for (const endpoint_id e : all) book.send_value(e, 6, 0);
    for (remote_thread& t : threads) t.join();
  });
}

// ---- messages of one node, whichever of its endpoints they come from ----

constexpr std::uint32_t speakers_each = 2;  // on each node
constexpr std::uint32_t words_each = 20;    // of a speaker, with each of two tags
constexpr std::size_t word_bytes = 100;

struct spoken {
  std::uint32_t speaker, number;
};

// Large ones, which stay with their sender until they are matched, have the tag that is wanted
// first: nobody waits for those behind them before.
void speak(endpoint_id to, std::uint32_t me) {
  endpoint& mine = this_thread::endpoint();
  for (std::uint32_t i = 0; i < 2 * words_each; ++i) {
    std::vector<std::byte> bytes(i % 8 == 7 ? 100'000 : word_bytes);
    const spoken w{me, i + 1};
    std::memcpy(bytes.data(), &w, sizeof(w));
    mine.send(to, 1 + i % 2, bytes);
  }
}

void by_node(runtime& rt) {
  rt.run([] {
    endpoint& mine = this_thread::endpoint();
    std::vector<remote_thread> speakers;
    for (unsigned n = 0; n < num_nodes(); ++n) {
      for (std::uint32_t k = 0; k < speakers_each; ++k)
        speakers.emplace_back(on_node{static_cast<node_id_t>(n)},
                              call<speak>(mine.id(), speakers_each * n + k));
    }
    constexpr std::uint32_t of_node = speakers_each * words_each;  // with each tag
    std::map<std::pair<endpoint_id, message_tag>, std::uint32_t> seen;
    const auto check = [&seen](const message_info& m, const std::byte* bytes, unsigned n) {
      spoken w;
      std::memcpy(&w, bytes, sizeof(w));
      require(m.source.node() == n && w.speaker / speakers_each == n, "a message of that node");
      std::uint32_t& before = seen[{m.source, m.tag}];
      require(w.number > before, "the order of a pair");
      before = w.number;
    };
    for (unsigned n = num_nodes(); n-- > 0;) {
      const endpoint_id there = any_endpoint_on(static_cast<node_id_t>(n));
      for (std::uint32_t i = 0; i < of_node; ++i) {
        const message m = mine.receive_message(there, 2);
        require(m.tag == 2, "the tag that is wanted");
        check(m, m.content.data(), n);
      }
      const message_info next = mine.wait_probe(there, 1);
      require(next.source.node() == n && next.tag == 1, "what is seen");
    }
    // Those of all nodes, by receives that wait at the same time.
    std::vector<std::array<std::byte, word_bytes>> words(of_node * num_nodes());
    std::vector<transfer> receives;
    for (std::size_t i = 0; i < words.size(); ++i) {
      const auto n = static_cast<node_id_t>(i % num_nodes());
      receives.push_back(
          mine.start_receive(words[i], any_endpoint_on(n), i % 3 == 0 ? any_tag : 1U));
    }
    for (std::size_t i = 0; i < words.size(); ++i)
      check(receives[i].wait(), words[i].data(), static_cast<unsigned>(i % num_nodes()));
    for (unsigned n = 0; n < num_nodes(); ++n)
      require(!mine.probe(any_endpoint_on(static_cast<node_id_t>(n))), "nothing is left");
    for (remote_thread& t : speakers) t.join();
  });
}

// ---- names ----

struct counter {
  explicit counter(long first) : value(first) {}
  long add(long more) { return value += more; }
  std::atomic<long> value;
};

// On every node.
void use_names() {
  require(await_name<int>("answer") == 42, "a published value");
  require(find_name<int>("answer") == 42, "the same again");
  try {
    (void)find_name<long>("answer");
    require(false, "another type");
  } catch (const misuse_error&) {
  }
  require(!find_name<int>("question").has_value(), "a name that nobody published");
  const auto hits = resource<counter>::await("hits");
  hits.call<&counter::add>(long{1});

  lock_handle lock = lock_handle::await("lock");
  const auto unguarded = await_name<global_ptr<long>>("unguarded");
  for (int i = 0; i < 20; ++i) {
    const std::lock_guard guard(lock);
    const resource<long> value(unguarded);
    const long before = value.call<[](long& v) { return v; }>();
    value.call<[](long& v, long next) { v = next; }>(before + 1);
  }
  domain_handle workers = domain_handle::await("workers");
  endpoint& mine = this_thread::endpoint();
  const std::uint32_t rank = workers.join(mine.id());
  require(workers.join(mine.id()) == rank, "joining twice");
  workers.await_size(num_nodes());
  const std::vector<endpoint_id> all = workers.members();
  require(all.size() == num_nodes() && all[rank] == mine.id(), "the members");
  // Round the ring.
  const auto ring = await_name<grid>("ring");
  mine.send_value(all[ring.rank(std::array{(rank + 1) % num_nodes()})], 8, rank);
  require(
      mine.receive_value<std::uint32_t>(any_endpoint, 8) == (rank + num_nodes() - 1) % num_nodes(),
      "the neighbour");
  barrier_handle::await("end").arrive_and_wait();
  require(workers.leave(mine.id()), "leaving");
}

void names(runtime& rt) {
  rt.run([] {
    for (int round = 0; round < 3; ++round) {
      long unguarded = 0;
      {
        const named<counter> hits("hits", 5);
        named<counting_semaphore<>> lock("lock", 1);
        named<domain> workers("workers");
        named<barrier<>> end("end", static_cast<std::ptrdiff_t>(num_nodes()));
        publish("unguarded", to_global(&unguarded));
        publish("ring", grid{.extent = {num_nodes()}, .wraps = {true}});
        thread late([] {
          this_thread::yield();
          publish("answer", 42);
        });
        on_every_node([] { use_names(); });
        late.join();
        require(unguarded == 20 * static_cast<long>(num_nodes()), "a lock between nodes");
        require(resource<counter>::find("hits").call<&counter::add>(long{0}) ==
                    5 + static_cast<long>(num_nodes()),
                "an object with a name");
        require(workers->size() == 0, "all have left");
        try {
          publish("answer", 43);
          require(false, "a name that is taken");
        } catch (const name_in_use_error&) {
        }
        require(withdraw("answer") && !withdraw("answer"), "a name is withdrawn once");
        require(withdraw("unguarded") && withdraw("ring"), "the others");
      }
      // Nobody remembers what is gone.
      on_every_node([] {
        for (const char* gone : {"answer", "hits", "lock", "ring"})
          require(!find_name<int>(gone).has_value(), "a name that is withdrawn");
      });
    }
  });
}

// ---- a node is lost while others wait for its messages ----

void lost(runtime& rt) {
  try {
    rt.run([] {
      endpoint mine;
      std::array<std::byte, 8> buffer, more;
      transfer receives = mine.start_receive(buffer);
      transfer of_that_node = mine.start_receive(more, any_endpoint_on(last_node()));
      remote_thread(on_node{last_node()}, call<die>()).detach();
      try {
        receives.wait();
        require(false, "nobody sends");
      } catch (const node_lost_error& e) {
        require(e.node() == last_node(), "who is lost");
        for (const bool begins : {false, true}) {
          try {
            (begins ? mine.start_receive(buffer, any_endpoint_on(last_node()))
                    : std::move(of_that_node))
                .wait();
            require(false, "nobody of that node sends");
          } catch (const node_lost_error& again) {
            require(again.node() == last_node(), "who is lost, again");
          }
        }
        std::puts("told");
        throw;
      }
    });
  } catch (const node_lost_error&) {
  }
}

// Those who wait for each other within this node, and for names at home here and elsewhere, are
// told as well; an object that has a name ends as others do.
void lost_within(runtime& rt) {
  try {
    rt.run([] {
      endpoint mine;
      const named<counter> known("known", 0);
      std::atomic<unsigned> told{0};
      const auto await_loss = [&told](const auto& waits) {
        try {
          waits();
          require(false, "there is nothing");
        } catch (const node_lost_error&) {
          ++told;
        }
      };
      const std::vector<std::byte> large(std::size_t{1} << 20);
      thread sender([&] { await_loss([&] { endpoint().send(mine.id(), 1, large); }); });
      while (!mine.probe()) this_thread::yield();
      // Enough for each node to be the home of some.
      constexpr int names_awaited = 16;
      std::vector<thread> waiting;
      for (int i = 0; i < names_awaited; ++i) {
        waiting.emplace_back([&await_loss, name = "none " + std::to_string(i)] {
          await_loss([&] { (void)await_name<int>(name); });
        });
      }
      remote_thread(on_node{last_node()}, call<die>()).detach();
      sender.join();
      for (thread& t : waiting) t.join();
      require(told == 1 + names_awaited, "all are told");
      std::puts("told");
      await_loss([&] { (void)mine.receive_message(mine.id()); });
      throw misuse_error("leaves by an exception");
    });
  } catch (const misuse_error&) {
  }
}

// ---- what has come before somebody waits for it ----

constexpr int at_once = 200;
constexpr char send_them = 's', all_are_sent = '!', no_more = 'n';

// Between the processes beside the runtime: who awaits a word keeps its worker, which looks at no
// messages meanwhile.
class word_pipe {
 public:
  word_pipe() { require(::pipe(ends_.data()) == 0, "a pipe"); }
  // Another process's, by one of its ends.
  word_pipe(pid_t process, int end, int mode) {
    const std::string path = "/proc/" + std::to_string(process) + "/fd/" + std::to_string(end);
    const int mine = ::open(path.c_str(), mode | O_CLOEXEC);
    require(mine >= 0, "the other process's pipe");
    ends_[mode == O_WRONLY ? 1 : 0] = mine;
  }
  ~word_pipe() {
    for (const int end : ends_)
      if (end >= 0) ::close(end);
  }
  word_pipe(const word_pipe&) = delete;
  word_pipe& operator=(const word_pipe&) = delete;

  [[nodiscard]] int reading_end() const { return ends_[0]; }
  [[nodiscard]] int writing_end() const { return ends_[1]; }
  void give(char word) const { require(::write(ends_[1], &word, 1) == 1, "to give a word"); }
  [[nodiscard]] char await() const {
    char word = 0;
    require(::read(ends_[0], &word, 1) == 1, "to be given a word");
    return word;
  }

 private:
  std::array<int, 2> ends_{-1, -1};
};

void send_when_told(endpoint_id to, pid_t process, int reading_end, int writing_end) {
  const word_pipe orders(process, reading_end, O_RDONLY);
  const word_pipe news(process, writing_end, O_WRONLY);
  while (orders.await() == send_them) {
    for (int i = 0; i < at_once; ++i) this_thread::endpoint().send_value(to, 1, i);
    news.give(all_are_sent);
  }
}

// Rounds of messages that have all come before the first one is received. `round` receives them and
// tells whether that went as it does while nobody else looks for messages, which nobody can promise
// for one round: the receiver looks while no worker is awake, and a look that it began before there
// was work can be in the middle of any later round if it loses its core. But it does not begin
// another one while the worker is kept, so all rounds behind its last look go well. In a row, and
// only those with nothing taken in at first: else they would also where nobody takes anything in.
template <class Round>
void in_rounds(endpoint& mine, const char* what, Round round) {
  constexpr int in_a_row_wanted = 10, rounds_max = 500;
  const word_pipe orders;
  const word_pipe news;
  remote_thread other(
      on_node{last_node()},
      call<send_when_told>(mine.id(), ::getpid(), orders.reading_end(), news.writing_end()));
  int in_a_row = 0;
  for (int n = 0; n < rounds_max && in_a_row < in_a_row_wanted; ++n) {
    orders.give(send_them);
    (void)news.await();
    const bool none_taken_in = !mine.probe(any_endpoint, 1).has_value();
    const bool went_well = round();
    in_a_row = none_taken_in && went_well ? in_a_row + 1 : 0;
  }
  orders.give(no_more);
  other.join();
  require(in_a_row == in_a_row_wanted, what);
}

// Who receives what has come already takes it in, and is not suspended for it.
void taken_in(runtime& rt) {
  rt.run([&rt] {
    endpoint mine;
    bool in_order = true;
    in_rounds(mine, "nobody is suspended for what has come", [&] {
      const std::uint64_t before = rt.stats().total().suspensions;
      for (int i = 0; i < at_once; ++i)
        in_order = mine.receive_value<int>(any_endpoint, 1) == i && in_order;
      return rt.stats().total().suspensions == before;
    });
    require(in_order, "messages in their order");
    // Nothing comes from a node that there is not, and nothing happens.
    int nothing = 0;
    const auto nobody = endpoint_id::from_bits(std::uint64_t{0xFFF0} << 48 | 1);
    transfer never = mine.start_receive(std::as_writable_bytes(std::span(&nothing, 1)), nobody);
    require(!never.wait_for(std::chrono::milliseconds(5)), "a message of no node");
  });
}

// But those who are ready go on all the same.
void others_go_on(runtime& rt) {
  rt.run([] {
    endpoint mine;
    in_rounds(mine, "whoever is ready goes on before the first message is taken in", [&] {
      bool gone_on = false;
      thread ready([&] { gone_on = true; });
      (void)mine.receive_value<int>(any_endpoint, 1);
      const bool gone_on_first = gone_on;
      for (int i = 1; i < at_once; ++i) (void)mine.receive_value<int>(any_endpoint, 1);
      ready.join();
      return gone_on_first;
    });
  });
}

// A send that waits for room is cancelled; the next one has room.
void report_addresses(endpoint_id to) {
  endpoint kept;
  endpoint last;
  last.send_value(to, 1, kept.id());
  (void)last.receive_value<int>();
}

void cancelled_send(runtime& rt) {
  rt.run([] {
    endpoint mine;
    remote_thread keeper(on_node{last_node()}, call<report_addresses>(mine.id()));
    endpoint_id full;
    const message_info first = mine.receive(std::as_writable_bytes(std::span(&full, 1)));
    const std::vector<std::byte> much(16384);
    std::vector<transfer> sends;
    const int little = 1;
    if (last_node() != 0) {  // within a node there is always room
      do {
        sends.push_back(mine.start_send(full, 1, much));
      } while (sends.back().test());
      transfer next = mine.start_send(full, 2, bytes_of(little));
      require(!next.test(), "waits behind it");
      require(sends.back().cancel(), "waits for room");
      next.wait();
    }
    mine.send_value(first.source, 1, little);
    keeper.join();
  });
}

}  // namespace

int main(int argc, char** argv) {
  static const std::map<std::string_view, void (*)(runtime&)> actions{
      {"by-node", by_node},
      {"calls", calls},
      {"cancelled-send", cancelled_send},
      {"copied-by-both", copied_by_both},
      {"crowd", crowd},
      {"echoes", echoes},
      {"goes-around", goes_around},
      {"group-errors", group_errors},
      {"group-example", group_example},
      {"group-loses-a-node", group_loses_a_node},
      {"groups", group_operations},
      {"guests-come-and-go", guests_come_and_go},
      {"huge", huge},
      {"killed-while-it-helps", killed_while_it_helps},
      {"large", large},
      {"lost", lost},
      {"lost-in-the-middle", lost_in_the_middle},
      {"lost-within", lost_within},
      {"named-objects-end", named_objects_end},
      {"named-tasks", named_tasks},
      {"names", names},
      {"names-at-once", names_at_once},
      {"names-found-often", names_found_often},
      {"names-found-once", names_found_once},
      {"nearest", find_nearest},
      {"others-go-on", others_go_on},
      {"paths", paths},
      {"registered", registered},
      {"slow-receiver", slow_receiver},
      {"taken-in", taken_in},
      {"waits-with-a-deadline", waits_with_a_deadline},
      {"wakes-one", wakes_one}};
  try {
    const options settings = options::parse(argc, argv);
    runtime rt(settings);
    actions.at(argv[argc - 1])(rt);
    std::puts("ok");
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
