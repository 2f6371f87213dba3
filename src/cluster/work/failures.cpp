// SPDX-License-Identifier: Apache-2.0
#include "cluster/work/failures.hpp"

#include <exception>
#include <span>
#include <utility>

#include "cluster/words/thrown.hpp"
#include "cluster/work/counted_post.hpp"
#include "cluster/work/quiescence.hpp"

namespace strata::cluster {

failures::failures(mailer& mail, local_node& here, quiescence& quiet, work_counts& counts)
    : mail_(mail), here_(here), quiet_(quiet), counts_(counts) {}

bool failures::tell(const std::exception_ptr& error) {
  {
    const std::lock_guard lock(mutex_);
    if (known_) return false;
  }
  // Nobody could be told that it was not told.
  const writer thrown = retry_without_memory([&] {
    writer out;
    pack_thrown(out, error, mail_.self());
    return out;
  });
  {
    const std::lock_guard lock(mutex_);
    if (known_) return false;
    know(thrown.bytes());
  }
  // Who comes from now on tell_comer() tells, or is a member already.
  say(kind::failed, thrown.bytes());
  return mail_.self() == 0;
}

void failures::know(std::span<const std::byte> thrown) {
  if (mail_.self() == 0)
    retry_without_memory([&] { thrown_.assign(thrown.begin(), thrown.end()); });
  known_ = true;
}

void failures::tell_comer(node_id n) {
  std::vector<std::byte> thrown;
  {
    const std::lock_guard lock(mutex_);
    if (!known_ || thrown_.empty()) return;
    // The others may have been told to forget it before this one was among them.
    fails_anew_ = settling_;
    retry_without_memory([&] { thrown = thrown_; });
  }
  say_to(n, kind::failed, thrown);
}

void failures::settle() {
  {
    const std::lock_guard lock(mutex_);
    // Another node's word came first, and all may have forgotten it since.
    if (!known_ || std::exchange(settling_, true)) return;
  }
  quiet_.detect([this] { forget_everywhere(); }, quiescence::passive::still);
}

void failures::forget_everywhere() {
  say(kind::settled, {});
  const auto done = [this] {
    if (!try_forget()) return forget_everywhere();
    here_.settle(false);
  };
  quiet_.detect(done, quiescence::passive::still);
}

void failures::keep_silent() {
  const std::lock_guard lock(mutex_);
  known_ = true;
  thrown_.clear();
}

void failures::say(kind k, std::span<const std::byte> payload) {
  for (const node_id n : members()) {
    // One that leaves may not get it any more.
    if (n != mail_.self()) say_to(n, k, payload);
  }
}

void failures::say_to(node_id n, kind k, std::span<const std::byte> payload) {
  retry_without_memory([&] { post_counted(mail_, counts_, n, k, payload); });
}

std::vector<node_id> failures::members() const {
  return retry_without_memory([this] { return mail_.members().all(); });
}

void failures::pass_on(node_id from, std::span<const std::byte> thrown) {
  for (const node_id n : members()) {
    if (n >= mail_.members().founders() && n != from) say_to(n, kind::failed, thrown);
  }
}

bool failures::try_forget() {
  const std::lock_guard lock(mutex_);
  if (std::exchange(fails_anew_, false)) return false;
  known_ = false;
  settling_ = false;
  thrown_.clear();
  return true;
}

void failures::on_failed(node_id from, reader r) {
  const auto packed = reader(r).take_rest();
  auto thrown = std::make_exception_ptr(unpack_thrown(r, mail_.nodes()));
  {
    const std::lock_guard lock(mutex_);
    if (!known_) know(packed);
    fails_anew_ = settling_;
  }
  here_.fail(std::move(thrown));
  if (mail_.self() == 0) pass_on(from, packed);
}

bool failures::on_message(node_id from, kind k, reader r) {
  if (k == kind::failed) {
    on_failed(from, r);
  } else if (k == kind::settled) {
    r.end();
    (void)try_forget();  // on node 0 alone somebody waits until nothing moves
    here_.settle(true);
  } else {
    return false;
  }
  counts_.received.fetch_add(1, std::memory_order_seq_cst);
  if (k == kind::failed && mail_.self() == 0) settle();
  return true;
}

}  // namespace strata::cluster
