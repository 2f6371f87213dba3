// SPDX-License-Identifier: Apache-2.0
#include "cluster/ways/remeasuring.hpp"

#include <algorithm>

#include "cluster/ways/link_costs.hpp"

namespace strata::cluster {
namespace {

// After somebody has come, or has left while others measured: others may follow.
constexpr std::int64_t soon_ns = 1'000'000'000;

// Of the first ping of the running job: what answers the survey before it may come late.
constexpr std::uint32_t first_number = std::uint32_t{1} << 30;

std::int64_t later(std::int64_t now_ns, std::int64_t ns) {
  return ns == 0 ? INT64_MAX : now_ns + ns;
}

}  // namespace

// ---- what is believed ----

believed_costs::key believed_costs::key_of(const way_plan::measurement& m) const {
  const std::uint16_t host = host_(m.by), other = host_(m.what.other);
  return std::minmax(host, other);
}

bool believed_costs::look_at(const way_plan::measurement& m) {
  const key k = key_of(m);
  const auto before = believed_.find(k);
  if (before == believed_.end() || before->second.what.network != m.what.network)
    return believe(k, m);
  const std::int64_t old = cost_of(before->second.what), now = cost_of(m.what);
  const bool is_dearer = now >= factor * old, is_cheaper = now * factor <= old;
  const auto suspected = suspected_.extract(k);
  if (!is_dearer && !is_cheaper) return false;
  const std::int64_t last = suspected.empty() ? old : cost_of(suspected.mapped().what);
  if (is_dearer ? last < factor * old : last * factor > old) {
    suspected_[k] = m;
    return false;
  }
  const bool last_is_nearer = is_dearer ? last < now : last > now;
  return believe(k, last_is_nearer ? suspected.mapped() : m);
}

bool believed_costs::believe(const key& k, const way_plan::measurement& m) {
  if (!changed_.contains(k) && changed_.size() == way_plan::measured_max) return false;
  changed_.insert(k);
  believed_[k] = m;
  return true;
}

std::vector<way_plan::measurement> believed_costs::changed() const {
  std::vector<way_plan::measurement> all;
  for (const key& k : changed_) all.push_back(believed_.at(k));
  return all;
}

// ---- surveys ----

remeasuring::remeasuring(mailer& mail, hands& h, believed_costs costs, std::int64_t every_ns,
                         std::int64_t now_ns)
    : mail_(mail),
      hands_(h),
      every_ns_(every_ns),
      costs_(std::move(costs)),
      due_ns_(later(now_ns, every_ns)) {
  survey_.emplace(*this, std::vector<node_id>{}, now_ns, limits(), first_number);
}

std::int64_t remeasuring::on_time(std::int64_t now_ns) {
  if (stopped_) return INT64_MAX;
  if (measures_ && now_ns >= next_ns_) go_on(now_ns);
  if (mail_.self() != 0) return next_ns_;
  if (now_ns >= due_ns_ && awaited_.empty()) order(now_ns);
  return std::min(next_ns_, awaited_.empty() ? due_ns_ : INT64_MAX);
}

void remeasuring::order(std::int64_t now_ns) {
  due_ns_ = INT64_MAX;
  const std::vector<node_id> all = mail_.members().all();
  awaited_ = {all.begin(), all.end()};
  found_.clear();
  ++number_;
  for (const node_id n : all) {
    if (n != mail_.self()) mail_.say(n, kind::measure_again, std::as_bytes(std::span(&number_, 1)));
  }
  measure(number_, now_ns);
}

void remeasuring::measure(std::uint32_t number, std::int64_t now_ns) {
  number_ = number;
  // Not 0, which would be the first of all.
  const std::uint32_t first = std::max<std::uint32_t>(survey_->next_number(), 1);
  survey_.emplace(*this, hands_.measured_here(), now_ns, limits(), first);
  measures_ = true;
  go_on(now_ns);
}

void remeasuring::go_on(std::int64_t now_ns) {
  next_ns_ = survey_->go_on(now_ns);
  if (!survey_->is_done()) return;
  measures_ = false;
  next_ns_ = INT64_MAX;
  std::vector<way_plan::measurement> all;
  for (const survey::result& r : survey_->results()) {
    // It may have left meanwhile.
    if (const auto network = hands_.network_to(r.node))
      all.push_back({mail_.self(), r.over(*network)});
  }
  writer found;
  found.add(number_);
  add_measured(found, all);
  if (mail_.self() != 0) return mail_.say(0, kind::measured_again, found.bytes());
  on_answer(0, reader(found.bytes()), now_ns);
}

bool remeasuring::on_message(node_id from, kind k, reader r, std::int64_t now_ns) {
  switch (k) {
    case kind::ping:
    case kind::pong:
      if (stopped_) return true;
      (void)survey_->on_message(from, k, r, now_ns);
      if (measures_) go_on(now_ns);
      return true;
    case kind::measure_again: {
      const auto number = r.take<std::uint32_t>();
      if (from != 0 || mail_.self() == 0 || !r.empty() || measures_)
        throw malformed("it wants networks to be measured out of turn");
      if (!stopped_) measure(number, now_ns);
      return true;
    }
    case kind::measured_again:
      if (mail_.self() != 0) throw malformed("a measurement for another node");
      // Who has left may have been asked after its last word as a member.
      if (mail_.members().of(from) != standing::left) on_answer(from, r, now_ns);
      return true;
    default:
      return false;
  }
}

void remeasuring::on_answer(node_id from, reader r, std::int64_t now_ns) {
  if (r.take<std::uint32_t>() != number_ || awaited_.erase(from) == 0)
    throw malformed("a measurement that nobody awaits");
  for (const way_plan::measurement& m : take_measured(r, mail_.nodes())) {
    if (m.by != from) throw malformed("a measurement of somebody else");
    if (mail_.members().of(m.what.other) == standing::absent)
      throw malformed("a measurement of what is not there");
    found_.push_back(m);
  }
  look_whether_all(now_ns);
}

void remeasuring::look_whether_all(std::int64_t now_ns) {
  if (!awaited_.empty() || due_ns_ != INT64_MAX || stopped_) return;
  const bool soon = std::exchange(again_soon_, false);
  due_ns_ = later(now_ns, soon ? std::min(soon_ns, every_ns_) : every_ns_);
  bool is_new = false;
  for (const way_plan::measurement& m : std::exchange(found_, {})) is_new |= costs_.look_at(m);
  if (is_new) hands_.on_costs(costs_.changed());
}

void remeasuring::members_have_changed(std::int64_t now_ns) {
  if (mail_.self() != 0 || every_ns_ == 0) return;
  const bool awaits = !awaited_.empty();
  std::erase_if(awaited_, [this](node_id n) { return !mail_.members().has(n); });
  if (awaits) {
    again_soon_ = true;
    return look_whether_all(now_ns);
  }
  due_ns_ = std::min(due_ns_, now_ns + std::min(soon_ns, every_ns_));
}

void remeasuring::stop() { stopped_ = true; }

}  // namespace strata::cluster
