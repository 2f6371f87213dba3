// SPDX-License-Identifier: Apache-2.0
#include "program_mailboxes.hpp"

#include <array>
#include <map>

#include "strata/fiber.hpp"
#include "strata/mailbox.hpp"
#include "tests/common/require.hpp"

namespace {

using namespace strata;
using test::require;

struct poster : threaded {
  global_ptr<mailbox> box;
  unsigned items;
  void start() {
    for (unsigned i = 0; i < items; ++i) drop_in(box, std::array<unsigned, 2>{node_id(), i});
    terminate();
  }
};

struct postmaster : threaded {
  unsigned items;
  slot_ptr done;
  std::map<unsigned, unsigned> next;
  unsigned got = 0;
  mailbox box{to_sptr(ARRIVED)};
  postmaster(unsigned i, slot_ptr d) : items(i), done(d) {}
  void start() {
    const unsigned each = items;
    const auto here = to_global(&box);
    for (unsigned n = 0; n < num_nodes(); ++n)
      invoke<poster>(static_cast<node_id_t>(n), here, each);
  }
  void arrived() {
    const auto item = retrieve_item<std::array<unsigned, 2>>(box);
    require(next[item[0]]++ == item[1], "items of one sender come in order");
    if (++got == items * num_nodes()) {
      sync(done);
      terminate();
    }
  }
  exclusive_fiber<&postmaster::arrived> ARRIVED{this, 1, 1};
};

}  // namespace

void mailboxes(runtime& rt) {
  rt.run([] {
    completion done;
    token<postmaster>(500U, done.sptr());
    done.wait();
  });
}
