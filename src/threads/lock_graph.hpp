// SPDX-License-Identifier: Apache-2.0
// Who holds and who waits for which lock: a forest, as each lock has at most one holder, and each
// party waits for at most one lock. Edges are added before their party waits, so whoever closes a
// circle finds it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

namespace strata::detail {

// Used by one at a time. Party: ordered.
template <class Party>
class lock_graph {
 public:
  struct link {
    Party party;
    const void* held;
    const void* wanted;
  };

  void take(const void* lock, const Party& by) { set_holder(lock, by); }
  void release(const void* lock) { set_holder(lock, std::nullopt); }

  // Who of a circle holds what and waits for what, the caller first, if `who` closes one.
  std::vector<link> await(const Party& who, const void* lock) {
    end_wait(who);
    lock_state& l = locks_[lock];
    if (l.awaited_by.empty() && l.holder) parties_[*l.holder].awaited.insert(lock);
    l.awaited_by.insert(who);
    parties_[who].wanted = lock;
    if (!closes_circle(who, lock)) return {};
    std::vector<link> circle;
    const void* wanted = lock;
    Party p = who;
    // From the last one on, who holds what the one before it waits for.
    do {
      const void* const held = wanted;
      p = *locks_.at(wanted).holder;
      wanted = parties_.at(p).wanted;
      circle.push_back({p, held, wanted});
    } while (p != who);
    return circle;
  }

  void end_wait(const Party& who) {
    const auto p = parties_.find(who);
    if (p == parties_.end() || p->second.wanted == nullptr) return;
    const auto l = locks_.find(p->second.wanted);
    p->second.wanted = nullptr;
    l->second.awaited_by.erase(who);
    if (l->second.awaited_by.empty() && l->second.holder)
      set_unawaited(*l->second.holder, l->first);
    forget_idle(l);
    forget_idle(parties_.find(who));
  }

  // Steps of all searches for circles so far.
  [[nodiscard]] std::uint64_t steps() const noexcept { return steps_; }

 private:
  struct lock_state {
    std::optional<Party> holder;
    std::set<Party> awaited_by;
  };
  struct party_state {
    const void* wanted = nullptr;
    std::set<const void*> awaited;  // of what it holds
  };
  enum class answer { yes, no, not_yet };

  void set_holder(const void* lock, const std::optional<Party>& now) {
    const auto l = locks_.try_emplace(lock).first;
    if (!l->second.awaited_by.empty()) {
      if (l->second.holder) set_unawaited(*l->second.holder, lock);
      if (now) parties_[*now].awaited.insert(lock);
    }
    l->second.holder = now;
    forget_idle(l);
  }
  void set_unawaited(const Party& holder, const void* lock) {
    const auto p = parties_.find(holder);
    if (p == parties_.end()) return;
    p->second.awaited.erase(lock);
    forget_idle(p);
  }
  void forget_idle(typename std::unordered_map<const void*, lock_state>::iterator l) {
    if (!l->second.holder && l->second.awaited_by.empty()) locks_.erase(l);
  }
  void forget_idle(typename std::map<Party, party_state>::iterator p) {
    if (p != parties_.end() && p->second.wanted == nullptr && p->second.awaited.empty())
      parties_.erase(p);
  }

  // There is one if who holds `lock` waits for `who`. Of the way ahead from there and the tree of
  // those who wait for `who` the smaller one decides, and both are looked at in turn, each time
  // twice as far: so however trees grow together, a node is looked at as often as its tree has
  // doubled.
  bool closes_circle(const Party& who, const void* lock) {
    for (std::size_t steps = 16;; steps *= 2) {
      if (const answer a = look_ahead(who, lock, steps); a != answer::not_yet)
        return a == answer::yes;
      if (const answer a = look_behind(who, lock, steps); a != answer::not_yet)
        return a == answer::yes;
    }
  }
  answer look_ahead(const Party& who, const void* wanted, std::size_t steps) {
    for (; steps != 0; --steps) {
      ++steps_;
      const auto l = locks_.find(wanted);
      if (!l->second.holder) return answer::no;
      if (*l->second.holder == who) return answer::yes;
      const auto p = parties_.find(*l->second.holder);
      if (p == parties_.end() || p->second.wanted == nullptr) return answer::no;
      wanted = p->second.wanted;
    }
    return answer::not_yet;
  }
  answer look_behind(const Party& who, const void* lock, std::size_t steps) {
    const std::optional<Party>& end = locks_.at(lock).holder;
    std::vector<Party> reached{who};
    for (std::size_t i = 0; i < reached.size(); ++i) {
      const auto p = parties_.find(reached[i]);
      for (const void* const held : p->second.awaited) {
        for (const Party& waits : locks_.at(held).awaited_by) {
          ++steps_;
          if (end == waits) return answer::yes;
          if (--steps == 0) return answer::not_yet;
          reached.push_back(waits);
        }
      }
    }
    return answer::no;
  }

  std::unordered_map<const void*, lock_state> locks_;  // held or awaited
  std::map<Party, party_state> parties_;               // that wait, or hold what is awaited
  std::uint64_t steps_ = 0;
};

}  // namespace strata::detail
