// SPDX-License-Identifier: Apache-2.0
#include "strata/resource.hpp"

#include <string>
#include <utility>

#include "messages/current_messenger.hpp"
#include "messages/messenger.hpp"

namespace strata {

namespace detail {

object_entry::object_entry(void* object, const void* mark) : number_(0) {
  messages::messenger& messenger = messages::messenger_or_refusal(
      "an object with a name can only be made within a runtime (runtime::run())");
  number_ = messenger.names.new_publication(this_worker().node);
  messenger.objects->enter(number_, object, mark);
  among_ = messenger.objects;
}

object_entry::~object_entry() {
  // Its owner has ended it, but where that was never made: nobody knows the number then.
  if (among_ != nullptr) (void)end();
}

bool object_entry::end() noexcept { return std::exchange(among_, nullptr)->end(number_); }

held_object::held_object(std::uint64_t number, void* object)
    : number_(number),
      object_(number == 0 ? object : messages::messenger_here()->objects->hold(number)) {}

held_object::~held_object() {
  if (number_ != 0 && object_ != nullptr) messages::messenger_here()->objects->let_go(number_);
}

unparked park_in_job(const parking& how) {
  messages::messenger* const messenger = messages::messenger_here();
  return messenger != nullptr ? messenger->waits.park(how) : park(how);
}

void require_whole_job() {
  if (const messages::messenger* const messenger = messages::messenger_here())
    messenger->waits.require_all_nodes();
}

void refuse_ended_resource(node_id_t node) {
  throw resource_ended_error(
      node, "a call on an object of node " + std::to_string(node) +
                " that has ended: look its name up again, or end it after the last call");
}

void refuse_no_resource() {
  throw misuse_error("a call on a resource that refers to nothing; find() or await() gives one");
}

}  // namespace detail

}  // namespace strata
