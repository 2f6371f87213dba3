// SPDX-License-Identifier: Apache-2.0
#include "launch/pmix/client.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <utility>

#include "base/errno_error.hpp"
#include "base/values.hpp"
#include "launch/pmix/pmix_library.hpp"
#include "os/clock.hpp"
#include "strata/error.hpp"

namespace strata::launch::pmix {

namespace {

// For what the server knows without asking anybody.
constexpr std::int64_t answer_limit_ns = 10'000'000'000;

// Answers that PMIx's own thread brings. Shared with it, because it may bring them when nobody
// waits any more.
class answers {
 public:
  explicit answers(std::size_t count) : values_(count), missing_(count) {}

  void put(std::size_t index, std::optional<std::string> value) {
    const std::lock_guard lock(mutex_);
    values_[index] = std::move(value);
    if (--missing_ == 0) complete_.notify_all();
  }

  // What has come until the deadline.
  std::vector<std::optional<std::string>> wait(std::int64_t deadline_ns) {
    std::unique_lock lock(mutex_);
    const std::int64_t left_ns = std::max<std::int64_t>(0, deadline_ns - os::now_ns());
    complete_.wait_for(lock, std::chrono::nanoseconds(left_ns), [this] { return missing_ == 0; });
    return values_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable complete_;
  std::vector<std::optional<std::string>> values_;
  std::size_t missing_;
};

// What a callback gets: made for one question, destroyed by its answer.
struct question {
  std::shared_ptr<answers> to;
  std::size_t index;
};

// The texts, bytes and numbers of PMIx, as text.
std::optional<std::string> to_text(const pmix_value_t& value) {
  switch (value.type) {
    case PMIX_STRING:
      return value.data.string;
    case PMIX_BYTE_OBJECT:
      return std::string(value.data.bo.bytes, value.data.bo.size);
    case PMIX_UINT32:
      return std::to_string(value.data.uint32);
    default:
      return std::nullopt;
  }
}

void on_value(pmix_status_t status, pmix_value_t* value, void* data) {
  const std::unique_ptr<question> asked(static_cast<question*>(data));
  const bool known = status == PMIX_SUCCESS && value != nullptr;
  asked->to->put(asked->index, known ? to_text(*value) : std::nullopt);
}

void on_met(pmix_status_t status, void* data) {
  const std::unique_ptr<question> asked(static_cast<question*>(data));
  asked->to->put(asked->index,
                 status == PMIX_SUCCESS ? std::optional<std::string>("") : std::nullopt);
}

// PMIx's connection is the process's, and so is this: an event descriptor that is never closed.
int server_gone() {
  static const int fd = ::eventfd(0, EFD_CLOEXEC);
  return fd;
}

void on_server_gone(std::size_t, pmix_status_t, const pmix_proc_t*, pmix_info_t*, std::size_t,
                    pmix_info_t*, std::size_t, pmix_event_notification_cbfunc_fn_t done,
                    void* data) {
  const std::uint64_t one = 1;
  while (::write(server_gone(), &one, sizeof one) < 0 && errno == EINTR) {
  }
  if (done != nullptr) done(PMIX_EVENT_ACTION_COMPLETE, nullptr, 0, nullptr, nullptr, data);
}

void watch_server(const pmix_library& library) {
  static const bool watched = [&library] {
    if (server_gone() < 0) throw errno_error("cannot create an event descriptor", errno);
    pmix_status_t code = PMIX_ERR_LOST_CONNECTION;
    library.PMIx_Register_event_handler(&code, 1, nullptr, 0, &on_server_gone, nullptr, nullptr);
    return true;
  }();
  (void)watched;
}

[[noreturn]] void refuse(const pmix_library& library, const std::string& what,
                         pmix_status_t status) {
  throw error("PMIx: " + what + ": " + library.PMIx_Error_string(status));
}

std::vector<unsigned> to_numbers(const std::string& list) {
  std::vector<unsigned> numbers;
  for (std::size_t at = 0; at < list.size();) {
    const std::size_t end = std::min(list.find(',', at), list.size());
    numbers.push_back(static_cast<unsigned>(parse_whole(list.substr(at, end - at), 0, 1U << 31)));
    at = end + 1;
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

}  // namespace

struct client::state {
  const pmix_library& library = pmix_library::get();
  pmix_proc_t self{};
  unsigned size = 0;
  std::vector<unsigned> peers;

  state() {
    const pmix_status_t status = library.PMIx_Init(&self, nullptr, 0);
    if (status != PMIX_SUCCESS) {
      throw user_error(
          std::string("PMIX_RANK is set, but the PMIx server does not let this process join: ") +
          library.PMIx_Error_string(status) +
          "; set STRATA_LAUNCH=none if it is no part of the job");
    }
  }
  ~state() { library.PMIx_Finalize(nullptr, 0); }
  state(const state&) = delete;
  state& operator=(const state&) = delete;

  void ask(unsigned rank, const std::string& key, const std::shared_ptr<answers>& to,
           std::size_t index) {
    pmix_proc_t whom = self;
    whom.rank = rank;
    auto asked = std::make_unique<question>(question{to, index});
    const pmix_status_t status =
        library.PMIx_Get_nb(&whom, key.c_str(), nullptr, 0, &on_value, asked.get());
    if (status == PMIX_SUCCESS) {
      (void)asked.release();  // on_value has it
    } else {
      to->put(index, std::nullopt);
    }
  }

  // Of the job as a whole.
  std::string about_job(const std::string& key) {
    const auto answer = std::make_shared<answers>(1);
    ask(PMIX_RANK_WILDCARD, key, answer, 0);
    auto values = answer->wait(os::now_ns() + answer_limit_ns);
    if (!values[0]) throw error("PMIx: the server does not know " + key + " of this job");
    return std::move(*values[0]);
  }
};

client::client() : state_(std::make_unique<state>()) {
  watch_server(state_->library);
  state_->size = static_cast<unsigned>(parse_whole(state_->about_job(PMIX_JOB_SIZE), 1, 1U << 31));
  state_->peers = to_numbers(state_->about_job(PMIX_LOCAL_PEERS));
  if (!std::binary_search(state_->peers.begin(), state_->peers.end(), state_->self.rank)) {
    throw error("PMIx: the server does not count this process among those of its host");
  }
}

client::~client() = default;

std::string client::version() { return pmix_library::get().PMIx_Get_version(); }

unsigned client::rank() const noexcept { return state_->self.rank; }
unsigned client::size() const noexcept { return state_->size; }
const std::vector<unsigned>& client::peers_of_host() const noexcept { return state_->peers; }

void client::put(const std::string& key, std::string_view bytes) {
  std::string copy(bytes);
  pmix_value_t value{};
  value.type = PMIX_BYTE_OBJECT;
  value.data.bo.bytes = copy.data();
  value.data.bo.size = copy.size();
  const pmix_status_t status = state_->library.PMIx_Put(PMIX_GLOBAL, key.c_str(), &value);
  if (status != PMIX_SUCCESS) refuse(state_->library, "cannot tell the others", status);
}

bool client::meet(std::int64_t deadline_ns) {
  const pmix_library& library = state_->library;
  if (const pmix_status_t status = library.PMIx_Commit(); status != PMIX_SUCCESS)
    refuse(library, "cannot tell the others", status);
  // What the others have put comes along, so that get() asks nobody.
  pmix_info_t with_data{};
  std::strncpy(with_data.key, PMIX_COLLECT_DATA, sizeof with_data.key - 1);
  with_data.value.type = PMIX_BOOL;
  with_data.value.data.flag = true;
  const auto answer = std::make_shared<answers>(1);
  auto asked = std::make_unique<question>(question{answer, 0});
  const pmix_status_t status =
      library.PMIx_Fence_nb(nullptr, 0, &with_data, 1, &on_met, asked.get());
  if (status == PMIX_OPERATION_SUCCEEDED) return true;
  if (status != PMIX_SUCCESS) refuse(library, "cannot meet the others", status);
  (void)asked.release();  // on_met has it
  return answer->wait(deadline_ns)[0].has_value();
}

std::vector<std::optional<std::string>> client::get(const std::vector<unsigned>& ranks,
                                                    const std::string& key,
                                                    std::int64_t deadline_ns) {
  const auto answer = std::make_shared<answers>(ranks.size());
  for (std::size_t i = 0; i < ranks.size(); ++i) state_->ask(ranks[i], key, answer, i);
  return answer->wait(deadline_ns);
}

int client::gone_fd() const noexcept { return server_gone(); }

void client::abort_job(int status, const std::string& why) noexcept {
  state_->library.PMIx_Abort(status, why.c_str(), nullptr, 0);
}

}  // namespace strata::launch::pmix
