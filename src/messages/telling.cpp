// SPDX-License-Identifier: Apache-2.0
#include "messages/telling.hpp"

#include "cluster/work/split_phase.hpp"
#include "messages/messenger.hpp"
#include "strata/detail/join.hpp"

namespace strata::messages {

using cluster::kind;

void messenger::tell(net::node_id to, const told_head& head) {
  if (mail_ != nullptr && has(to)) post(to, kind::told, head);
}

void messenger::on_told(net::node_id from, cluster::reader& r) {
  const auto head = r.take<told_head>();
  r.end();
  switch (head.what) {
    case told_of::best:
      return hear_of_best(*this, from, head);
    case told_of::stop:
      return hear_of_stop(*this, from, head);
  }
  throw cluster::malformed("a word of an object of no kind");
}

void messenger::await_answer(home_answer& a, net::node_id home, const told_head& question) {
  strata::detail::require_stack();
  waits.require_all_nodes();
  if (mail_ == nullptr || home >= mail_->nodes())
    strata::detail::refuse_node(home, strata::detail::this_worker());
  // If it leaves after that, on_left() finds who asks.
  if (!has(home)) throw cluster::has_left(home);
  tell(home, question);
  while (a.kind() == home_answer::none) {
    (void)waits.park({.what = "answer of an object's node",
                      .address = &a,
                      .still =
                          [](void* asked) {
                            return static_cast<home_answer*>(asked)->kind() == home_answer::none;
                          },
                      .argument = &a});
  }
  if (a.kind() == home_answer::left) throw cluster::has_left(home);
  if (a.kind() == home_answer::ended) strata::detail::refuse_ended_resource(home);
}

}  // namespace strata::messages
