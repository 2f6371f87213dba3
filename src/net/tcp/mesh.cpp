// SPDX-License-Identifier: Apache-2.0
#include "net/tcp/mesh.hpp"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <system_error>
#include <utility>

#include "base/errno_error.hpp"
#include "launch/job.hpp"
#include "net/tcp/conversation.hpp"
#include "net/tcp/unauthenticated.hpp"
#include "strata/detail/check.hpp"

namespace strata::net::tcp {

namespace {

// A connection that ends before the verdict may have been pushed out by strangers, so it is tried
// again; but who has the wrong key must hear of it before the deadline.
constexpr unsigned attempts_max = 8;
constexpr std::int64_t first_pause_ns = 10'000'000;
constexpr std::size_t missing_named_max = 8;
constexpr unsigned late_looks_max = 16;  // a handshake takes some

using progress = conversation::progress;

class mesh {
 public:
  mesh(const identity& me, std::span<const listener> at,
       const std::vector<launch::address>& directory, std::int64_t deadline_ns,
       const mesh_options& options)
      : me_(me),
        directory_(directory),
        deadline_ns_(deadline_ns),
        options_(options),
        sockets_(directory.size()),
        nodes_(directory.size()),
        unauthenticated_(me, at, {options.strangers_max, options.stranger_limit_ns},
                         *options.ground,
                         [this](node_id n) { return !expects(n) || bool{sockets_[n]}; }) {}

  std::vector<os::descriptor> form() {
    if (options_.on_news) options_.on_news();
    for (node_id n = 0; n < me_.nodes; ++n) missing_ += expects(n);
    // What has come while this process had no processor counts after the deadline too.
    unsigned late_looks = 0;
    while (missing_ > 0) {
      now_ns_ = options_.ground->now_ns();
      if (now_ns_ >= deadline_ns_ && ++late_looks > late_looks_max) {
        if (!options_.partial || has_run_out()) give_up();
        break;
      }
      unauthenticated_.drop_late(now_ns_);
      begin_connecting();
      wait();
    }
    for (node_id n = 0; missing_ > 0 && options_.on_left_out && n < me_.nodes; ++n) {
      if (expects(n) && !sockets_[n]) options_.on_left_out(n, trouble_with(n));
    }
    return std::move(sockets_);
  }

 private:
  // What we know of a node we connect to, or wait for.
  struct other {
    std::optional<conversation> ours;  // while we talk to it
    unsigned attempts = 0;
    std::int64_t next_ns = 0;    // not before then
    std::string trouble;         // the last thing that went wrong
    bool no_descriptor = false;  // that was none of its doing
  };

  [[nodiscard]] bool expects(node_id n) const noexcept {
    return n != me_.node && directory_[n].port != 0;
  }

  void begin_connecting() {
    for (node_id n = 0; n < me_.node; ++n) {
      other& o = nodes_[n];
      if (!expects(n) || sockets_[n] || o.ours || now_ns_ < o.next_ns) continue;
      os::descriptor s;
      try {
        s = options_.ground->connect(directory_[n], options_.socket_buffer_bytes);
      } catch (const user_error&) {
        throw;
      } catch (const no_descriptor_left& e) {
        had_no_descriptor_for(n, e.what());
        continue;
      } catch (const error& e) {
        o.no_descriptor = false;
        failed(n, e.what());
        continue;
      }
      o.no_descriptor = false;
      // It may be a while until that node looks; only the deadline limits our patience.
      o.ours.emplace(conversation{std::move(s), handshake::connector(me_, n, fresh_nonce()),
                                  text_of(directory_[n]), deadline_ns_});
    }
  }

  void wait() {
    polled_.clear();
    polled_.push_back({options_.cancelled, POLLIN, 0});  // -1 is passed over
    polled_.push_back({options_.news, POLLIN, 0});
    const std::size_t first_ours = polled_.size();
    std::int64_t until_ns = deadline_ns_;
    for (node_id n = 0; n < me_.node; ++n) {
      const other& o = nodes_[n];
      if (o.ours) {
        polled_.push_back({o.ours->socket.get(), o.ours->events(), 0});
      } else if (expects(n) && !sockets_[n]) {
        until_ns = std::min(until_ns, o.next_ns);
      }
    }
    unauthenticated_.add_to(polled_, now_ns_, until_ns);

    const std::int64_t pause_ns = std::max<std::int64_t>(until_ns - now_ns_, 0);
    if (options_.ground->wait(polled_, pause_ns) < 0) {
      if (errno == EINTR) return;
      throw errno_error("cannot wait for the other nodes", errno);
    }

    // It may have been long: who is accepted now has all of its time before it.
    now_ns_ = options_.ground->now_ns();
    if (polled_[0].revents != 0) throw error("nobody waits for the connection any more");
    if (polled_[1].revents != 0) options_.on_news();
    std::size_t i = first_ours;
    for (node_id n = 0; n < me_.node; ++n) {
      if (nodes_[n].ours && polled_[i++].revents != 0) advance_ours(n);
    }
    unauthenticated_.look(
        polled_, now_ns_, [this](conversation& c, std::size_t) { welcome(c); },
        [this](const conversation& c) { refuse(c); });
  }

  void advance_ours(node_id n) {
    other& o = nodes_[n];
    if (const int code = connect_error(o.ours->socket.get()); code != 0) {
      return failed(n, o.ours->with + ": " + std::generic_category().message(code));
    }
    switch (o.ours->advance()) {
      case progress::waiting:
        return;
      case progress::joined:
        sockets_[n] = std::move(o.ours->socket);
        o.ours.reset();
        --missing_;
        return;
      case progress::refused:
        return refused_by(n);
      case progress::broken:
        return failed(
            n, o.ours->with + ": " +
                   (o.ours->error != 0 ? std::generic_category().message(o.ours->error)
                                       : "it closed the connection: is that a node of this job?"));
    }
  }

  // Node n, or whoever is at its address, does not want us, or we do not want it.
  void refused_by(node_id n) {
    const handshake& talk = nodes_[n].ours->talk;
    const std::string words =
        "node " + std::to_string(n) + " (" + nodes_[n].ours->with + ") " + talk.explanation();
    if (!talk.proved()) return failed(n, nodes_[n].ours->with + ": " + talk.explanation());
    if (talk.reason() == refusal::other_build || talk.reason() == refusal::other_version) {
      throw user_error(words);
    }
    throw error(words);
  }

  void failed(node_id n, const std::string& why) {
    other& o = nodes_[n];
    o.ours.reset();
    o.trouble = why;
    if (++o.attempts == attempts_max && options_.partial) {
      o.next_ns = deadline_ns_;
      return;
    }
    if (o.attempts == attempts_max) {
      throw error("cannot join node " + std::to_string(n) + ": " + why);
    }
    o.next_ns = now_ns_ + (first_pause_ns << (o.attempts - 1));
  }

  // No failure of node n, which is tried until the deadline.
  void had_no_descriptor_for(node_id n, const std::string& why) {
    if (!options_.partial) return failed(n, why);
    other& o = nodes_[n];
    o.trouble = why;
    o.no_descriptor = true;
    o.next_ns = now_ns_ + first_pause_ns;
  }

  [[nodiscard]] bool has_run_out() const noexcept {
    return unauthenticated_.has_run_out() ||
           std::any_of(nodes_.begin(), nodes_.end(),
                       [](const other& o) { return o.no_descriptor; });
  }

  void welcome(conversation& s) {
    const node_id n = s.talk.peer();
    if (sockets_[n]) return;  // a second one got its verdict at the same time
    sockets_[n] = std::move(s.socket);
    --missing_;
  }

  void refuse(const conversation& s) {
    if (s.talk.proved() && s.talk.peer() < nodes_.size()) {
      nodes_[s.talk.peer()].trouble = s.with + " " + s.talk.explanation();
    }
    if (options_.on_refused) options_.on_refused(s.with, s.talk.reason(), s.talk.explanation());
  }

  // Empty: nothing was heard of it.
  [[nodiscard]] std::string trouble_with(node_id n) const {
    return nodes_[n].ours ? nodes_[n].ours->with + " does not answer" : nodes_[n].trouble;
  }

  [[noreturn]] void give_up() const {
    std::string who;
    std::size_t named = 0;
    for (node_id n = 0; n < me_.nodes; ++n) {
      if (!expects(n) || sockets_[n] || ++named > missing_named_max) continue;
      if (!who.empty()) who += ", ";
      who += "node " + std::to_string(n);
      if (const std::string why = trouble_with(n); !why.empty()) who += " (" + why + ")";
    }
    if (named > missing_named_max) {
      who += " and " + std::to_string(named - missing_named_max) + " more";
    }
    throw error("node " + std::to_string(me_.node) + " waited in vain for " + who +
                ": not joined within the time limit" +
                (has_run_out() ? "; this node ran out of descriptors: raise ulimit -n" : ""));
  }

  const identity& me_;
  const std::vector<launch::address>& directory_;
  const std::int64_t deadline_ns_;
  const mesh_options& options_;

  std::vector<os::descriptor> sockets_;
  std::vector<other> nodes_;
  unauthenticated unauthenticated_;
  std::size_t missing_ = 0;
  std::int64_t now_ns_ = 0;
  std::vector<pollfd> polled_;
};

}  // namespace

identity identity_in(const launch::job_description& job, const std::string& build_id) {
  identity me;
  me.job = job.job;
  me.key = job.key;
  me.node = job.node;
  me.nodes = job.capacity;
  me.build_id = build_id.substr(0, build_id_bytes_max);
  return me;
}

std::vector<os::descriptor> connect_mesh(const identity& me, std::span<const listener> at,
                                         const std::vector<launch::address>& directory,
                                         std::int64_t deadline_ns, const mesh_options& options) {
  STRATA_CHECK(directory.size() == me.nodes, directory.size(), me.nodes);
  STRATA_CHECK(me.node < me.nodes, me.node, me.nodes);
  return mesh(me, at, directory, deadline_ns, options).form();
}

}  // namespace strata::net::tcp
