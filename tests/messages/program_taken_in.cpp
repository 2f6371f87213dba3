// SPDX-License-Identifier: Apache-2.0
#include "program_taken_in.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <span>
#include <string>

#include "../common/require.hpp"
#include "program_support.hpp"
#include "strata/message.hpp"
#include "strata/remote_thread.hpp"
#include "strata/stats.hpp"
#include "strata/thread.hpp"

namespace {

using namespace strata;
using test::last_node;
using test::require;

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
  // probe() itself looks in one round of 16: fewer than that in a row are to be had.
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

}  // namespace

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

namespace {

void answer_twice(endpoint_id to) {
  endpoint& mine = this_thread::endpoint();
  mine.send_value(to, 0, mine.id());
  for (int i = 0; i < 2; ++i) mine.send_value(to, 1, mine.receive_value<int>(to));
}

}  // namespace

// As programs with MPI wait: nothing else runs on the only worker.
void nothing_but_looks(runtime& rt) {
  rt.run([] {
    endpoint mine;
    remote_thread other(on_node{last_node()}, call<answer_twice>(mine.id()));
    const auto to = mine.receive_value<endpoint_id>(any_endpoint, 0);
    int heard = 0;
    transfer receives =
        mine.start_receive(std::as_writable_bytes(std::span(&heard, 1)), any_endpoint, 1);
    mine.send_value(to, 0, 7);
    while (!receives.test()) {
    }
    receives.wait();
    require(heard == 7, "what the loop of test() has waited for");
    mine.send_value(to, 0, 8);
    while (!mine.probe(to, 1)) {
    }
    require(mine.receive_value<int>(to, 1) == 8, "what the loop of probe() has waited for");
    other.join();
  });
}
