// SPDX-License-Identifier: Apache-2.0
// A node's end of the line to our launcher.
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <new>
#include <optional>
#include <utility>

#include "base/environment.hpp"
#include "base/errno_error.hpp"
#include "launch/inherited_line.hpp"
#include "launch/job.hpp"
#include "launch/messages.hpp"
#include "launch/site.hpp"
#include "os/descriptor.hpp"

namespace strata::launch {

namespace {

constexpr const char* gone = "the launcher is gone";

os::descriptor inherited_socket(const std::string& text) {
  const int fd = socket_named(text);
  take_line(fd);
  // Children of the node have no part in the job.
  ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  return os::descriptor(fd);
}

node_lost_error loss_told_by(const lost_message& message) {
  return {message.node, "node " + std::to_string(message.node) + " is lost: " + message.why};
}

void send_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) throw error(gone);
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

class launcher_line final : public control_line {
 public:
  explicit launcher_line(os::descriptor line)
      : line_(std::move(line)), closing_(::eventfd(0, EFD_CLOEXEC)) {
    if (!closing_) throw errno_error("cannot create an event descriptor", errno);
    const frame first = blocking_next();
    if (first.kind != frame_kind::welcome) refuse_frame("the first message is not a welcome");
    job_ = unpack_welcome(first.payload);
    if (job_.shared_memory >= 0 && ::fcntl(job_.shared_memory, F_SETFD, FD_CLOEXEC) != 0) {
      throw errno_error("cannot use the memory that the nodes of this host share", errno);
    }
  }

  [[nodiscard]] const job_description& job() const noexcept override { return job_; }
  std::vector<std::string> share_found(const std::string& mine) override;
  std::vector<address> exchange(const address& mine, const std::string& build_id) override;
  std::vector<closed_link> share_closed(const std::vector<closed_link>& mine) override;
  std::vector<std::vector<measured_link>> share_measurements(
      const std::vector<measured_link>& mine) override;
  [[nodiscard]] int news_fd() const noexcept override { return line_.get(); }
  void look() override;
  std::string learn_plan() override;
  void tell_plan(const std::string& plan) noexcept override;
  bool wait(const job_news& news) override;
  void say(word_to_launcher word, node_id about) noexcept override;
  void tell_loss(node_id, const std::string& why) noexcept override;
  void close() noexcept override;
  [[nodiscard]] bool tells_of_losses() const noexcept override { return true; }

 private:
  // Reads what is there, or waits for it. False at the end of the line.
  bool fill() {
    std::array<char, 16384> block;
    while (true) {
      const ssize_t bytes = ::recv(line_.get(), block.data(), block.size(), 0);
      if (bytes < 0 && errno == EINTR) continue;
      if (bytes <= 0) return false;
      arrived_.add({block.data(), static_cast<std::size_t>(bytes)});
      return true;
    }
  }

  // Of what has been taken in.
  std::optional<frame> next() {
    if (looked_at_.empty()) return arrived_.next();
    std::optional<frame> first(std::move(looked_at_.front()));
    looked_at_.pop_front();
    return first;
  }

  frame blocking_next() {
    while (true) {
      if (auto first = next()) return std::move(*first);
      if (!fill()) throw error(gone);
    }
  }

  // What all wait for.
  frame blocking_answer(frame_kind expected) {
    frame answer = blocking_next();
    if (answer.kind == frame_kind::lost) throw loss_told_by(unpack_lost(answer.payload));
    if (answer.kind != expected) refuse_frame("a message comes out of turn");
    return answer;
  }

  // Any thread; one message after the other.
  void send(const std::string& bytes) {
    const std::lock_guard lock(sending_);
    send_all(line_.get(), bytes);
  }
  void hear(const frame& f, const job_news& news) const;
  void hear_of_comer(const frame& f, const job_news& news) const;

  os::descriptor line_;
  std::mutex sending_;
  os::descriptor closing_;  // an eventfd: readable after close()
  std::atomic<bool> closed_{false};
  frame_reader arrived_;
  std::deque<frame> looked_at_;  // by look(), and for others
  job_description job_;
};

std::vector<std::string> launcher_line::share_found(const std::string& mine) {
  send(pack_found(mine));
  auto everybodys = unpack_all_found(blocking_answer(frame_kind::all_found).payload);
  if (everybodys.size() != job_.founders) refuse_frame("what was found is incomplete");
  return everybodys;
}

std::vector<address> launcher_line::exchange(const address& mine, const std::string& build_id) {
  send(pack_reachable({build_id, mine}));
  auto everybody = unpack_directory(blocking_answer(frame_kind::directory).payload);
  if (everybody.size() != job_.nodes) refuse_frame("the directory is incomplete");
  return everybody;
}

std::vector<closed_link> launcher_line::share_closed(const std::vector<closed_link>& mine) {
  if (!job_.late) send(pack_closed(frame_kind::closed, mine));
  return unpack_closed(blocking_answer(frame_kind::all_closed).payload);
}

std::vector<std::vector<measured_link>> launcher_line::share_measurements(
    const std::vector<measured_link>& mine) {
  if (!job_.late) send(pack_measured(mine));
  auto all = unpack_measurements(blocking_answer(frame_kind::measurements).payload);
  if (all.size() != job_.founders) refuse_frame("the measurements are incomplete");
  return all;
}

void launcher_line::look() {
  pollfd readable{line_.get(), POLLIN, 0};
  while (::poll(&readable, 1, 0) > 0) {
    if (!fill()) throw error(gone);
  }
  while (auto one = arrived_.next()) looked_at_.push_back(std::move(*one));
  for (const frame& f : looked_at_) {
    if (f.kind != frame_kind::lost) continue;
    const lost_message message = unpack_lost(f.payload);
    // A node that was to come later, and does not, has had no part in the job.
    if (message.node < job_.nodes) throw loss_told_by(message);
  }
}

std::string launcher_line::learn_plan() {
  return unpack_ways(blocking_answer(frame_kind::ways).payload);
}

void launcher_line::tell_plan(const std::string& plan) noexcept {
  try {
    send(pack_ways(plan));
  } catch (const std::exception&) {
    // The launcher is gone, which wait() tells.
  }
}

void launcher_line::hear_of_comer(const frame& f, const job_news& news) const {
  try {
    const admit_message message = unpack_admit(f.payload);
    if (message.node >= job_.capacity || !news.admit)
      refuse_frame("a message numbers its node wrongly");
    news.admit(message.node, message.host, message.where);
  } catch (const std::bad_alloc&) {
    // It is not let in; the launcher tells who has not.
  }
}

void launcher_line::hear(const frame& f, const job_news& news) const {
  switch (f.kind) {
    case frame_kind::lost: {
      const lost_message message = unpack_lost(f.payload);
      if (message.node >= job_.capacity) refuse_frame("a message numbers its node wrongly");
      return news.lost(message.node, message.why);
    }
    case frame_kind::admit:
      return hear_of_comer(f, news);
    case frame_kind::leave:
      if (news.leave) return news.leave();
      break;
    case frame_kind::go:
      if (news.go) return news.go();
      break;
    default:
      break;
  }
  refuse_frame("a message comes out of turn");
}

bool launcher_line::wait(const job_news& news) {
  try {
    while (true) {
      while (const auto first = next()) hear(*first, news);
      std::array<pollfd, 2> events{pollfd{closing_.get(), POLLIN, 0},
                                   pollfd{line_.get(), POLLIN, 0}};
      if (::poll(events.data(), events.size(), -1) < 0) continue;  // a signal
      if (events[0].revents != 0) return false;
      if (events[1].revents != 0 && !fill()) return true;
    }
  } catch (const error&) {
    // Whoever writes this is not our launcher.
    return true;
  }
}

void launcher_line::say(word_to_launcher word, node_id about) noexcept {
  try {
    send(pack_word(word, about));
  } catch (const std::exception&) {
    // The launcher is gone, which wait() tells.
  }
}

void launcher_line::tell_loss(node_id node, const std::string& why) noexcept {
  try {
    send(pack_missed({node, why}));
  } catch (const std::exception&) {  // see above
  }
}

void launcher_line::close() noexcept {
  if (closed_.exchange(true)) return;
  try {
    send(pack_finished());
  } catch (const std::exception&) {
    // The launcher is gone, which is as good: nobody waits for this message.
  }
  const std::uint64_t one = 1;
  while (::write(closing_.get(), &one, sizeof one) < 0 && errno == EINTR) {
  }
}

}  // namespace

std::unique_ptr<control_line> control_line::open() {
  const char* const variable = find_variable(job_fd_variable);
  if (variable == nullptr) return nullptr;
  const std::string text = variable;
  ::unsetenv(job_fd_variable);
  note_node();
  return std::make_unique<launcher_line>(inherited_socket(text));
}

}  // namespace strata::launch
