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

void signal_twice(slot_ptr s) {
  sync(s);
  sync(s);
}

}  // namespace

void misuse(runtime& rt) {
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
