// SPDX-License-Identifier: Apache-2.0
#include "messages/directory.hpp"

#include "messages/messenger.hpp"
#include "sched/scheduler.hpp"
#include "strata/remote_thread.hpp"

namespace strata::messages {

using detail::published_value;

bool directory::enter(const std::string& name, const published_value& v) {
  const std::lock_guard lock(home_mutex_);
  if (!home_.try_emplace(name, entry{v, {}}).second) return false;
  entered_.notify_all();
  return true;
}

published_value directory::give(const std::string& name, net::node_id asks, bool waits) {
  std::unique_lock lock(home_mutex_);
  auto found = home_.find(name);
  while (found == home_.end()) {
    if (!waits) return {};
    entered_.wait(lock);
    found = home_.find(name);
  }
  found->second.remembered_by.insert(asks);
  return found->second.value;
}

bool directory::remove(const std::string& name, std::set<net::node_id>& remembered_by) {
  const std::lock_guard lock(home_mutex_);
  auto node = home_.extract(name);
  if (node.empty()) return false;
  remembered_by = std::move(node.mapped().remembered_by);
  return true;
}

published_value directory::recall(const std::string& name, std::uint64_t& epoch) {
  const std::lock_guard lock(cache_mutex_);
  epoch = epoch_;
  const auto found = cache_.find(name);
  return found != cache_.end() ? found->second : published_value{};
}

void directory::remember(const std::string& name, const published_value& v, std::uint64_t epoch) {
  const std::lock_guard lock(cache_mutex_);
  if (epoch == epoch_) cache_.insert_or_assign(name, v);
}

void directory::forget(const std::string& name) {
  const std::lock_guard lock(cache_mutex_);
  ++epoch_;
  cache_.erase(name);
}

}  // namespace strata::messages

namespace strata {
namespace detail {
namespace {

messages::directory& names_here() {
  const worker& w = this_worker();
  if (w.owner == nullptr) throw misuse_error("a name can only be used within a runtime");
  return w.owner->messenger->names;
}

on_node home_of(const resource_name& name) {
  return {static_cast<node_id_t>(std::hash<std::string_view>()(name.view()) % num_nodes())};
}

// ---- made on the name's home ----

bool enter_at_home(const resource_name& name, const published_value& v) {
  return names_here().enter(std::string(name.view()), v);
}

published_value give_from_home(const resource_name& name, node_id_t asks, bool waits) {
  return names_here().give(std::string(name.view()), asks, waits);
}

void forget_here(const resource_name& name) { names_here().forget(std::string(name.view())); }

bool withdraw_at_home(const resource_name& name) {
  std::set<net::node_id> remembered_by;
  if (!names_here().remove(std::string(name.view()), remembered_by)) return false;
  for (const net::node_id n : remembered_by) call<forget_here>(on_node{n}, name);
  return true;
}

}  // namespace

resource_name checked_name(std::string_view name) {
  if (name.empty() || name.size() > name_bytes_max || name.find('\0') != std::string_view::npos)
    throw misuse_error("a name must have 1 to 63 bytes, none of them zero: \"" +
                       std::string(name.substr(0, name_bytes_max)) + "\"");
  resource_name n;
  name.copy(n.text.data(), name.size());
  return n;
}

void refuse_type(const resource_name& name) {
  throw misuse_error("the name \"" + std::string(name.view()) + "\" stands for another type");
}

void publish_value(const resource_name& name, const published_value& v) {
  published_value known = v;
  known.found = true;
  if (!call<enter_at_home>(home_of(name), name, known))
    throw name_in_use_error("the name \"" + std::string(name.view()) + "\" is taken");
}

published_value look_up(const resource_name& name, bool waits) {
  messages::directory& names = names_here();
  const std::string text(name.view());
  std::uint64_t epoch = 0;
  published_value v = names.recall(text, epoch);
  if (v.found) return v;
  v = call<give_from_home>(home_of(name), name, node_id(), waits);
  if (v.found) names.remember(text, v, epoch);
  return v;
}

}  // namespace detail

bool withdraw(std::string_view name) {
  const detail::resource_name n = detail::checked_name(name);
  return call<detail::withdraw_at_home>(detail::home_of(n), n);
}

}  // namespace strata
