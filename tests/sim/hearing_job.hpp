// SPDX-License-Identifier: Apache-2.0
// A simulated job in the middle of everything, whose nodes hear what no node of this program says:
// for tests, and for fuzz/. Whatever they hear, it ends as it does in engine::receive().
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "errands.hpp"
#include "mutation.hpp"
#include "sim/simulated_job.hpp"
#include "strata/error.hpp"
#include "strata/fiber.hpp"
#include "strata/mailbox.hpp"
#include "strata/shared_best.hpp"
#include "strata/shared_stop.hpp"
#include "support.hpp"

namespace strata::test {

// What others may name. It never ends, and so has nothing that would have to be freed.
struct patient : threaded {
  patient** where;
  std::unique_ptr<mailbox>* box;
  void start() {
    *where = this;
    *box = std::make_unique<mailbox>(to_sptr(ARRIVED));
  }
  void arrived() {}
  void signalled() {}
  fiber<&patient::arrived> ARRIVED{this, 1, 1};
  fiber<&patient::signalled> SIGNALLED{this, 1U << 30};
};

// All that fibers say to other nodes: of one that was called by another node.
struct caller : threaded {
  global_ptr<std::byte> block;
  std::byte* copy;
  std::size_t bytes;
  global_ptr<mailbox> box;
  slot_ptr signalled;
  void start() {
    block_move_sync(block, to_global(copy), bytes, to_sptr(HERE));
    signalled.increment(1);
    sync(signalled);
    drop_in(box, copy, std::min<std::size_t>(bytes, 100));
    drop_in(box, copy, bytes);
  }
  void here() {
    block_move_sync(to_global(copy), block, bytes, signalled);
    terminate();
  }
  fiber<&caller::here> HERE{this, 1};
};

enum class heard {
  taken,      // whatever it does, it may
  malformed,  // the engine drops who has said it
  misused,    // the computation fails: it may be the program's mistake
};

class hearing_job {
 public:
  enum class flavour { fixed, elastic, networks };
  static constexpr std::array all_flavours{flavour::fixed, flavour::elastic, flavour::networks};
  static constexpr net::node_id founders = 4, capacity = 6;

  // What one node has said to another; false: as if nobody had been asked.
  using listener = std::function<bool(net::node_id at, net::node_id from, kind k,
                                      std::span<const std::byte> payload)>;

  // At work, and so far on as the seed says: up to that many happenings.
  hearing_job(flavour f, std::uint64_t seed, std::uint64_t happenings_max, listener l = {})
      : random_(seed), world_({.jitter_ns = 20'000}, seed), listens_(std::move(l)) {
    arena_.resize(block_bytes * (1 + founders));
    sim::job_model m;
    m.nodes = capacity;
    m.cost = two_microseconds;
    m.stalls_after_ns = 4'000'000;
    if (f == flavour::fixed) {
      m.nodes = founders;
    } else {
      m.founders = founders;
    }
    if (f == flavour::networks) {
      // A circle with something across, and the comer at its end.
      m.links = [](net::node_id a, net::node_id b) -> std::optional<cluster::link> {
        static constexpr std::array<std::pair<int, int>, 6> laid{
            {{0, 1}, {1, 2}, {2, 3}, {0, 3}, {1, 3}, {3, 4}}};
        const std::pair<int, int> ends = std::minmax<int>(a, b);
        const bool is_laid = std::find(laid.begin(), laid.end(), ends) != laid.end();
        return is_laid ? std::optional(cluster::link(5'000)) : std::nullopt;
      };
      m.measures = true;
      m.measures_again_ns = 20'000'000;
      m.spares = random_.below(2) == 0;
      m.lost_after_ns = 200'000'000;
    }
    job_.emplace(world_, m);
    world_.run([&] { return job_->has_begun(); });
    job_->when_made = [this](net::node_id n) { listen(n); };
    for (net::node_id n = 0; n < founders; ++n) listen(n);
    for (net::node_id n = 0; n < founders; ++n) open(n);
    begin(f);
    go_on(random_.below(happenings_max + 1));
  }
  ~hearing_job() {
    listens_ = {};
    for (talker& t : talkers_) t.messenger->close(t.id, *t.where);
    keeper_.messenger->close(keeper_.id, *keeper_.where);
    for (auto& p : posted_) (void)p->r.messenger->cancel(p->r);
  }
  hearing_job(const hearing_job&) = delete;
  hearing_job& operator=(const hearing_job&) = delete;

  [[nodiscard]] sim::job& job() { return *job_; }
  [[nodiscard]] prng& random() { return random_; }
  // Two that are there; node 0 may not know yet that one has ended.
  [[nodiscard]] std::pair<net::node_id, net::node_id> any_two() {
    std::vector<net::node_id> all = job_->node(0).members().all();
    std::erase_if(all, [this](net::node_id n) { return job_->node(n).has_left(); });
    const std::size_t at = random_.below(all.size());
    const std::size_t from = (at + 1 + random_.below(all.size() - 1)) % all.size();
    return {all[at], all[from]};
  }

  // So much more happens, or all that there is to happen.
  void go_on(std::uint64_t happenings) {
    const std::uint64_t until = world_.happenings() + happenings;
    world_.run([&] { return world_.happenings() >= until; }, world_.now_ns() + 50'000'000);
  }

  // Throws what engine::receive() would take for nobody's fault.
  heard hear(net::node_id at, net::node_id from, kind k, std::span<const std::byte> payload) {
    // Of its own, so that a sanitizer sees a byte too many.
    const auto exact = std::make_unique<std::byte[]>(payload.size());
    std::copy(payload.begin(), payload.end(), exact.get());
    const bool listened = std::exchange(is_hearing_, true);
    heard how = heard::taken;
    try {
      job_->node(at).handle(from, k, {exact.get(), payload.size()});
    } catch (const cluster::malformed& e) {
      how = heard::malformed;
      check_words(e.what());
    } catch (const error& e) {
      how = heard::misused;
      check_words(e.what());
    }
    is_hearing_ = listened;
    return how;
  }

  // The same for what names places, which are some of this job's, whatever it says: only which
  // nodes they are of is as it says.
  heard hear_anywhere(net::node_id at, net::node_id from, kind k, payload_bytes payload) {
    keep_what_is_trusted(k, message_to_arena(at, k), payload);
    return hear(at, from, k, payload);
  }

  // One of that kind that has all it can have, for what is in this job. Of tokens and calls too.
  [[nodiscard]] payload_bytes message_to_arena(net::node_id at, kind k) {
    payload_bytes m(cluster::message_bytes_max);
    const auto memory = reinterpret_cast<std::uintptr_t>(arena_.data());
    patient& p = *patients_[at % founders];
    const auto slot = reinterpret_cast<std::uintptr_t>(static_cast<strata::slot*>(&p.SIGNALLED));
    for (const std::size_t where : addresses_in(k)) {
      const bool is_memory =
          (k == kind::put || k == kind::got || k == kind::get) && where != addresses_in(k).back();
      set_value<std::uint64_t>(m, where,
                               k == kind::drop_in
                                   ? reinterpret_cast<std::uintptr_t>(boxes_[at % founders].get())
                               : is_memory ? memory
                                           : slot);
    }
    if (k == kind::get) set_value<std::uint64_t>(m, 24, 8 * cluster::part_bytes_max);
    if (k == kind::invoke || k == kind::tokens) {
      for (std::size_t where = k == kind::tokens ? 4 : 0; where + 32 <= m.size(); where += 32) {
        set_value(std::span(m), where, token_errand::code.identity());
        set_value(std::span(m), where + 16, awaited_errand::code.identity());
        set_value<std::uint64_t>(m, where + 24,
                                 detail::global_address(1, awaited_.front().get()).bits());
      }
    }
    return m;
  }

  // What has been thrown where nobody hears it: a kept message, or one within another, was
  // malformed, or the program's mistake.
  void check_failure() {
    if (job_->failure() == nullptr) return;
    try {
      std::rethrow_exception(job_->failure());
    } catch (const cluster::malformed& e) {
      check_words(e.what());
    } catch (const error& e) {
      check_words(e.what());
    }
  }

 private:
  // One that all write and read, and one of each caller.
  static constexpr std::size_t block_bytes = std::size_t{1} << 20;

  struct posted {
    messages::request r;
    std::vector<std::byte> bytes;
    std::unique_ptr<std::byte[]> room;  // of which only what comes is touched
  };
  struct talker {
    net::node_id node;
    messages::messenger* messenger;
    messages::port* where;
    endpoint_id id;
  };

  // Said to people, in one line.
  static void check_words(const std::string& words) {
    for (const char c : words) {
      if (c == '\n') throw std::logic_error("an error of two lines: " + words);
    }
  }

  void listen(net::node_id n) {
    job_->node(n).hears = [this, n](net::node_id from, kind k, std::span<const std::byte> p) {
      return !is_hearing_ && listens_ && listens_(n, from, k, p);
    };
  }

  void open(net::node_id n) {
    for (int i = 0; i < 2; ++i) talkers_.push_back(opened(n));
  }
  talker opened(net::node_id n) {
    messages::messenger& messenger = job_->node(n).messenger;
    messages::port& where = messenger.open();
    return {n, &messenger, &where, where.id};
  }

  messages::request& send(talker& from, talker& to, std::size_t bytes, messages::action what) {
    posted& p = *posted_.emplace_back(std::make_unique<posted>());
    p.bytes.resize(bytes);
    p.r.what = what;
    p.r.messenger = from.messenger;
    p.r.mine = from.where;
    p.r.from = p.bytes;
    p.r.info = {from.id, to.id, static_cast<message_tag>(random_.below(3)), bytes};
    from.messenger->send(p.r);
    return p.r;
  }
  // Into so much and no more: what an offer says of its size nobody can check.
  void receive(talker& at, std::size_t bytes, std::optional<message_tag> tag = {}) {
    posted& p = *posted_.emplace_back(std::make_unique<posted>());
    p.room = std::make_unique_for_overwrite<std::byte[]>(bytes);
    p.r.what = random_.below(8) == 0 ? messages::action::probe : messages::action::receive;
    p.r.messenger = at.messenger;
    p.r.mine = at.where;
    p.r.into = {p.room.get(), bytes};
    if (random_.below(4) == 0) p.r.wanted.tag = static_cast<message_tag>(random_.below(3));
    if (tag) p.r.wanted.tag = *tag;
    p.r.info.target = at.id;
    at.messenger->receive(p.r);
  }
  talker& any_talker() { return talkers_[random_.below(talkers_.size())]; }

  void begin(flavour f) {
    for (net::node_id n = 0; n < founders; ++n) {
      job_->node(n).as_worker(
          [&] { invoke<patient>(n, local_address(&patients_[n]), local_address(&boxes_[n])); });
    }
    world_.run([&] {
      return std::all_of(patients_.begin(), patients_.end(), [](auto* p) { return p != nullptr; });
    });
    for (net::node_id n = 0; n < founders; ++n) call_others(n);
    for (int i = 0; i < 120; ++i) {
      world_.at(world_.now_ns() + static_cast<std::int64_t>(random_.below(3'000'000)),
                [this] { talk(); });
    }
    // Enough from one to one that there is room to be given back.
    talker &from = talkers_[2], &to = talkers_[random_.below(2)];
    for (int i = 0; i < 12; ++i) {
      receive(to, 10'000);
      send(from, to, 10'000, messages::action::send);
    }
    seek_in_vain();
    share();
    job_->node(0).protocols.quiet.detect([] {});
    if (f != flavour::fixed) come_and_go(f);
  }

  // As much as there is room for is kept for somebody who waits for something else; one that waits
  // behind it is given up.
  void seek_in_vain() {
    constexpr message_tag nobodys = 3;
    keeper_ = opened(1);
    receive(keeper_, 10'000, nobodys);
    talker& fills = talkers_[0];
    for (int i = 0; i < 15; ++i)
      send(fills, keeper_, std::size_t{16} << 10, messages::action::send);
    send(fills, keeper_, 15'360, messages::action::send);
    world_.at(world_.now_ns() + 500'000, [this, &fills] {
      messages::request& r = send(fills, keeper_, 150'000, messages::action::send);
      world_.at(world_.now_ns() + static_cast<std::int64_t>(random_.below(500'000)),
                [&r] { r.messenger->recall(r); });
    });
  }

  // A best and a stop, of which two others are told.
  void share() {
    messages::messenger& home = job_->node(0).messenger;
    job_->node(0).as_worker([this] {
      best_.emplace(0U);
      stop_.emplace();
    });
    const std::uint64_t stop = home.names.new_publication(0) - 1, best = stop - 1;
    for (const net::node_id n : {net::node_id{1}, net::node_id{2}}) {
      job_->node(n).as_worker([&] {
        messages::messenger& here = job_->node(n).messenger;
        const auto asks = [&](messages::told_of what, std::uint64_t number) {
          return [&here, what, number](const auto&) {
            here.tell(0, {number, 0, what, messages::told_word::asks});
          };
        };
        using functions = detail::best_functions<unsigned, std::less<>>;
        (void)here.bests.follow(best, 0, asks(messages::told_of::best, best), 0U, functions::type);
        (void)here.stops.follow(stop, 0, asks(messages::told_of::stop, stop));
      });
      world_.at(world_.now_ns() + 20'000 * n, [this, n, best, stop] {
        if (job_->node(0).members().of(n) == cluster::standing::left) return;
        job_->node(n).as_worker([&] {
          messages::messenger& here = job_->node(n).messenger;
          if (const auto known = here.bests.find(best)) {
            for (unsigned i = 1; i < 4; ++i) {
              (void)known->here.cell.improve(10 * i + n, known->here.type);
              detail::tell_best(
                  {.where = global_ptr<detail::best_state>(0, nullptr), .number = best});
            }
          }
          if (n == 2) here.tell(0, {stop, 7, messages::told_of::stop, messages::told_word::wants});
        });
      });
    }
    world_.at(world_.now_ns() + 30'000,
              [this] { job_->node(0).as_worker([this] { (void)best_->here().improve(15); }); });
  }

  void call_others(net::node_id n) {
    patient& p = *patients_[n];
    const auto other = static_cast<net::node_id>((n + 1 + random_.below(founders - 1)) % founders);
    const std::size_t bytes = random_.below(3) == 0 ? 400'000 : 1 + random_.below(3'000);
    job_->node(n).as_worker([&] {
      invoke<caller>(other, to_global(arena_.data()),
                     local_address(arena_.data() + block_bytes * (1U + n)), bytes,
                     to_global(boxes_[n].get()), to_sptr(p.SIGNALLED));
      for (int i = 0; i < 8; ++i) {
        detail::this_worker().push(token_errand::unpack(detail::this_worker(), nullptr));
        awaited_.push_back(std::make_unique<awaited_errand>());
        job_->node(n).protocols.data.call(detail::this_worker(), other, *awaited_.back(), {});
      }
      if (random_.below(6) == 0)
        job_->node(n).fail(std::make_exception_ptr(error("no such place")));
    });
  }

  void talk() {
    talker &from = any_talker(), &to = any_talker();
    const std::uint64_t what = random_.below(10);
    if (what < 4) return receive(to, std::size_t{300} << 10);
    if (what == 9 && random_.below(6) == 0) return from.messenger->close(from.id, *from.where);
    const std::size_t bytes = what == 8 ? 150'000 : what == 7 ? 20'000 : random_.below(16'000);
    send(from, to, bytes,
         what == 4 ? messages::action::send_synchronously : messages::action::send);
  }

  void come_and_go(flavour f) {
    const auto in = [this](std::uint64_t ns) {
      return world_.now_ns() + static_cast<std::int64_t>(random_.below(ns));
    };
    // Who has nothing leaves again, at once or not; who has something wants to, and cannot.
    world_.at(in(3'000'000), [this, in] {
      job_->come([this, in](net::node_id n) {
        if (random_.below(3) != 0)
          world_.at(in(5'000'000), [this, n] {
            job_->leave(
                n, [] {}, [] {});
          });
      });
    });
    if (random_.below(4) == 0)
      world_.at(in(6'000'000), [this] {
        job_->leave(
            2, [] {}, [] {});
      });
    if (f == flavour::networks && random_.below(3) != 0)
      world_.at(in(6'000'000), [this] { job_->tear(1, 3); });
  }

  prng random_;
  std::vector<std::byte> arena_;
  // In use until the job has ended.
  std::deque<std::unique_ptr<posted>> posted_;
  std::deque<std::unique_ptr<awaited_errand>> awaited_;
  std::array<patient*, founders> patients_{};
  std::array<std::unique_ptr<mailbox>, founders> boxes_;
  sim::world world_;
  listener listens_;
  bool is_hearing_ = false;
  std::optional<sim::job> job_;
  std::deque<talker> talkers_;
  talker keeper_;
  std::optional<shared_best<unsigned>> best_;
  std::optional<shared_stop> stop_;
};

}  // namespace strata::test
