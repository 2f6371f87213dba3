// SPDX-License-Identifier: Apache-2.0
#include "cluster/ways/found_networks.hpp"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "base/networks.hpp"
#include "launch/frame.hpp"

namespace strata::cluster {
namespace {

using launch::payload_reader;
using launch::payload_writer;

constexpr std::size_t told_text_bytes_max = 255;
constexpr std::size_t find_bytes_min = 4 + 4 + 4 + 2 + 4;
constexpr std::size_t told_answer_bytes = 2 + 2;

bool is_open(const launch::address& a) { return a.port != 0 || !a.worker.empty(); }

void write(payload_writer& out, const launch::address& a) {
  out.text(a.host).u16(a.port).text(a.worker);
}

launch::address read_address(payload_reader& in) {
  launch::address a;
  a.host = in.text(told_text_bytes_max);
  a.port = in.u16();
  a.worker = in.text(told_text_bytes_max);
  return a;
}

template <class F>
void for_pairs(std::size_t hosts, F f) {
  for (std::size_t a = 0; a < hosts; ++a) {
    for (std::size_t b = a + 1; b < hosts; ++b) f(a, b);
  }
}

}  // namespace

std::string pack(const own_finds& mine) {
  payload_writer home;
  write(home, mine.home);
  payload_writer all;
  std::uint32_t count = 0;
  for (const own_finds::network& n : mine.networks) {
    payload_writer one;
    one.text(n.range).text(n.interface);
    write(one, n.where);
    if (home.bytes().size() + 4 + all.bytes().size() + one.bytes().size() > launch::found_bytes_max)
      break;
    all.raw(one.bytes());
    ++count;
  }
  return home.u32(count).raw(all.bytes()).bytes();
}

own_finds unpack_own_finds(std::string_view bytes) {
  payload_reader in(bytes);
  own_finds all;
  all.home = read_address(in);
  all.networks.resize(in.count(find_bytes_min));
  for (own_finds::network& n : all.networks) {
    n.range = in.text(told_text_bytes_max);
    n.interface = in.text(told_text_bytes_max);
    n.where = read_address(in);
    (void)prefix_of(n.range);
  }
  in.done();
  return all;
}

std::string pack(const std::vector<answer>& mine) {
  payload_writer out;
  out.u32(static_cast<std::uint32_t>(mine.size()));
  for (const answer& one : mine) out.u16(one.network).u16(one.node);
  return out.bytes();
}

std::vector<answer> unpack_answers(std::string_view bytes) {
  payload_reader in(bytes);
  std::vector<answer> all(in.count(told_answer_bytes));
  for (answer& one : all) {
    one.network = in.u16();
    one.node = in.u16();
  }
  in.done();
  return all;
}

found_networks::found_networks(const std::vector<std::string>& told,
                               const std::vector<std::uint16_t>& host_of) {
  for (std::size_t n = 0; n < told.size(); ++n) {
    const std::uint16_t number = host_of.at(n);
    if (std::any_of(hosts_.begin(), hosts_.end(),
                    [&](const host& h) { return h.number == number; }))
      continue;
    hosts_.push_back({static_cast<node_id>(n), number, unpack_own_finds(told[n])});
  }
  std::vector<network> all;
  for (std::size_t h = 0; h < hosts_.size(); ++h) {
    for (const own_finds::network& n : hosts_[h].there.networks) {
      auto found = std::find_if(all.begin(), all.end(),
                                [&](const network& one) { return one.range == n.range; });
      if (found == all.end())
        found = all.insert(all.end(), {n.range, decltype(network::at)(hosts_.size())});
      found->at[h] = &n;
    }
  }
  for (network& n : all) {
    std::set<std::string> addresses;
    // Bridges of containers and virtual machines, which each host has for itself: often all of them
    // with the same address, which only the host itself would answer at.
    bool is_everywhere_the_same = false;
    for (const own_finds::network* one : n.at) {
      if (one != nullptr && !addresses.insert(one->where.host).second)
        is_everywhere_the_same = true;
    }
    if (addresses.size() > 1 && !is_everywhere_the_same && networks_.size() < tried_max)
      networks_.push_back(std::move(n));
  }
}

const launch::address& found_networks::where(std::size_t number, std::size_t h) const {
  return number == homes() ? hosts_[h].there.home : networks_[number].at[h]->where;
}

bool found_networks::has_homes(const network& n, std::size_t a, std::size_t b) const {
  const auto is_home = [&](std::size_t h) {
    return n.at[h] != nullptr && n.at[h]->where.host == hosts_[h].there.home.host;
  };
  return is_home(a) && is_home(b);
}

bool found_networks::is_tried(std::size_t number, std::size_t a, std::size_t b) const {
  if (number != homes()) {
    const auto& at = networks_[number].at;
    return at[a] != nullptr && at[b] != nullptr && is_open(at[a]->where) && is_open(at[b]->where);
  }
  const launch::address& x = hosts_[a].there.home;
  const launch::address& y = hosts_[b].there.home;
  return is_open(x) && is_open(y) && x.host != y.host &&
         std::none_of(networks_.begin(), networks_.end(),
                      [&](const network& n) { return has_homes(n, a, b); });
}

std::vector<found_networks::candidate> found_networks::tried_by(node_id self,
                                                                node_id capacity) const {
  std::vector<candidate> all;
  const auto me =
      std::find_if(hosts_.begin(), hosts_.end(), [&](const host& h) { return h.first == self; });
  const auto own = static_cast<std::size_t>(me - hosts_.begin());
  for (std::size_t number = 0; number <= homes(); ++number) {
    candidate& c = all.emplace_back();
    if (number != homes()) c.range = networks_[number].range;
    c.others.resize(capacity);
    for (std::size_t h = 0; me != hosts_.end() && h < hosts_.size(); ++h) {
      if (h != own && is_tried(number, own, h)) c.others.at(hosts_[h].first) = where(number, h);
    }
  }
  return all;
}

// Which hosts have answers of each other, over which of the networks that are tried.
class found_networks::agreement {
 public:
  explicit agreement(std::size_t hosts) : hosts_(hosts) {}

  // Host `by` says that it has one of `of`.
  void add(std::size_t number, std::size_t by, std::size_t of) { said_.emplace(number, by, of); }
  [[nodiscard]] bool joins(std::size_t number, std::size_t a, std::size_t b) const {
    return said_.contains({number, a, b}) && said_.contains({number, b, a});
  }
  [[nodiscard]] bool joins_any(std::size_t number) const {
    bool any = false;
    for_pairs(hosts_, [&](std::size_t a, std::size_t b) { any = any || joins(number, a, b); });
    return any;
  }

 private:
  const std::size_t hosts_;
  std::set<std::tuple<std::size_t, std::size_t, std::size_t>> said_;
};

found_networks::agreement found_networks::agreed(const std::vector<std::string>& answers) const {
  agreement all(hosts_.size());
  for (std::size_t h = 0; h < hosts_.size(); ++h) {
    for (const answer& one : unpack_answers(answers.at(hosts_[h].first))) {
      const auto other = std::find_if(hosts_.begin(), hosts_.end(),
                                      [&](const host& x) { return x.first == one.node; });
      const auto place = static_cast<std::size_t>(other - hosts_.begin());
      if (other == hosts_.end() || place == h || one.network > homes() ||
          !is_tried(one.network, h, place))
        launch::refuse_frame("a node tells of an answer that cannot be");
      all.add(one.network, h, place);
    }
  }
  return all;
}

// One that is that of the same interfaces under another name does not: a second address, or one of
// the newer kind.
bool found_networks::adds_to(std::size_t before, std::size_t number, const agreement& had) const {
  bool same = true;
  for_pairs(hosts_.size(), [&](std::size_t a, std::size_t b) {
    if (!had.joins(number, a, b)) return;
    const auto is_same_at = [&](std::size_t h) {
      return networks_[number].at[h]->interface == networks_[before].at[h]->interface;
    };
    same = same && had.joins(before, a, b) && is_same_at(a) && is_same_at(b);
  });
  return !same;
}

std::vector<std::size_t> found_networks::useful(const agreement& had) const {
  std::vector<std::size_t> kept;
  for (std::size_t number = 0; number < homes(); ++number) {
    if (had.joins_any(number) && std::all_of(kept.begin(), kept.end(), [&](std::size_t before) {
          return adds_to(before, number, had);
        }))
      kept.push_back(number);
  }
  return kept;
}

bool found_networks::is_plain(const std::vector<std::size_t>& kept, const agreement& had) const {
  bool plain = kept.size() < 2;
  for_pairs(hosts_.size(), [&](std::size_t a, std::size_t b) {
    plain = plain &&
            (kept.empty() || (had.joins(kept[0], a, b) && has_homes(networks_[kept[0]], a, b)));
  });
  return plain;
}

found_networks::outcome found_networks::judge(const std::vector<std::string>& answers,
                                              bool more_may_come) const {
  const agreement had = agreed(answers);
  std::vector<std::size_t> kept = useful(had);
  outcome result;
  if (is_plain(kept, had)) return result;
  // Not one alone: a job of several networks does without one of them.
  if (kept.size() == 1 || more_may_come || had.joins_any(homes())) kept.push_back(homes());
  for (const host& h : hosts_) result.joins.add(h.number);
  for (std::size_t i = 0; i < kept.size(); ++i) {
    result.ranges.push_back(kept[i] == homes() ? std::string() : networks_[kept[i]].range);
    for_pairs(hosts_.size(), [&](std::size_t a, std::size_t b) {
      if (had.joins(kept[i], a, b))
        result.joins.join(hosts_[a].number, hosts_[b].number, static_cast<std::uint16_t>(i));
    });
  }
  return result;
}

}  // namespace strata::cluster
