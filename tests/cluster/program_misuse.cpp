// SPDX-License-Identifier: Apache-2.0
#include "program_misuse.hpp"

#include <string>

#include "strata/call.hpp"
#include "strata/error.hpp"
#include "strata/fiber.hpp"
#include "strata/remote_thread.hpp"
#include "tests/common/require.hpp"

namespace {

using namespace strata;
using test::require;

struct nobodys : threaded {
  void start() {}
};

global_ptr<int> word_of() {
  static int word = 0;
  return to_global(&word);
}

template <class F>
void expect_words(F&& f, const std::string& words) {
  try {
    f();
  } catch (const misuse_error& e) {
    return require(e.what() == words, e.what());
  }
  require(false, "it is refused");
}

void signal_twice(slot_ptr s) {
  sync(s);
  sync(s);
}

}  // namespace

void misuse(runtime& rt) {
  rt.run([&] {
    const auto there = call<word_of>(on_node{1});
    const std::string far = "what a global_ptr points to lies on node 1, this is node 0: ";
    expect_words([&] { (void)there.local(); },
                 far + "reach it by get_sync, put_sync or block_move_sync");
    completion done;
    if (num_nodes() > 2) {
      const auto third = call<word_of>(on_node{2});
      expect_words([&] { block_move_sync(third, there, 1, done.sptr()); },
                   far + "one end of a block_move_sync lies on the calling node");
    }
    // Null on any node.
    const std::string nowhere = " points nowhere: give it the address of something first";
    for (const node_id_t n : {node_id_t{0}, node_id_t{1}}) {
      const global_ptr<int> null(n, nullptr);
      int x = 0;
      expect_words([&] { put_sync(1, null, done.sptr()); }, "the global_ptr to put to" + nowhere);
      expect_words([&] { get_sync(null, &x, done.sptr()); },
                   "the global_ptr to get from" + nowhere);
      expect_words([&] { block_move_sync(to_global(&x), null, 1, done.sptr()); },
                   "the global_ptr to put to" + nowhere);
      expect_words([&] { block_move_sync(null, to_global(&x), 1, done.sptr()); },
                   "the global_ptr to get from" + nowhere);
    }
    expect_words([&] { block_move_sync(global_ptr<int>(0, nullptr), there, 1, done.sptr()); },
                 "the global_ptr to get from" + nowhere);
    const node_id_t nobody = 77;
    const slot_ptr nobodys(nobody, static_cast<slot*>(done.sptr().where().address()));
    const std::string no_node = "no node 77: this job has " + std::to_string(num_nodes()) +
                                " nodes, numbers 0 to " + std::to_string(num_nodes() - 1);
    int x = 0;
    expect_words([&] { put_sync(1, there, nobodys); }, no_node);
    expect_words([&] { get_sync(there, &x, nobodys); }, no_node);
    expect_words([&] { put_sync(1, to_global(&x), nobodys); }, no_node);
    sync(done.sptr());
    done.wait();  // by none of those
  });
  try {
    rt.run([] { invoke<nobodys>(static_cast<node_id_t>(num_nodes())); });
    require(false, "there is no such node");
  } catch (const misuse_error& e) {
    require(std::string(e.what()).find(" nodes, numbers 0 to ") != std::string::npos, e.what());
  }
}

// Told where it was sent from another node, as within one.
void signal_too_many(runtime& rt) {
  try {
    rt.run([] {
      completion once(1);
      completion never(1);
      call<signal_twice>(on_node{1}, once.sptr());
      never.wait();
    });
    require(false, "waited for nothing");
  } catch (const misuse_error&) {
  }
}
