// SPDX-License-Identifier: Apache-2.0
// The exceptions that Strata throws. An exception thrown by a task of the user travels unchanged to
// its join; these are ours.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace strata {

/// The base of Strata's own errors, those below among them, and of what the operating system
/// refused. what() is one line that says what happened, with which operands, and what can be done
/// about it. Where an interface is the standard's, and where stacks or memory run out, its
/// exceptions are thrown: std::system_error, std::future_error, std::bad_alloc.
class error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The person at the keyboard gave something wrong: a flag, a variable, a file. A program prints
/// what() as one line on stderr and exits with status 2.
class user_error : public error {
 public:
  using error::error;
};

/// The program broke the contract of a function: for example fork2join outside a runtime. Fix the
/// program.
class misuse_error : public error {
 public:
  using error::error;
};

/// Bytes that have come do not make an object of the type that was asked for (strata/serialize.hpp,
/// and calls that take or return objects).
class serialization_error : public error {
 public:
  using error::error;
};

/// A node of the job is gone, and with it whatever it held: its process ended, its host does not
/// answer. Unless it is a node_left_error, the job cannot go on; every run(), wait() and
/// wait_idle() that is in progress throws this, and so does whoever waits for a message or an
/// answer of another node, or for an object by its handle (strata/synchronizers.hpp). Under
/// `strata run` the program has ten seconds to save what it has before it is ended.
///
/// Threads that wait for each other on one node by other means (a mutex, a semaphore without a
/// name) are not told; what a lost node held never comes back: wait with a limit there.
class node_lost_error : public error {
 public:
  node_lost_error(std::uint16_t node, const std::string& what) : error(what), node_(node) {}
  /// Which one.
  [[nodiscard]] std::uint16_t node() const noexcept { return node_; }

 private:
  std::uint16_t node_;
};

/// A node of an elastic job has left it as agreed (`strata leave`), or never came although it had a
/// number (strata/membership.hpp). The job goes on; what needs that node throws this. Where
/// signals or data of fibers were still on the way to it the computation fails: run() throws this.
class node_left_error : public node_lost_error {
 public:
  using node_lost_error::node_lost_error;
};

/// An exception left a fiber, a task or a thread on another node. what() is one line that begins
/// with that exception's type, the node where it was thrown, and its own what():
/// "std::range_error on node 2: no such city"; if it came by other nodes, they follow: " (by way of
/// node 1)". Copying never throws.
///
/// It says by which nodes it came, and not by which functions: where the exception is caught, on
/// its own node, the stack that threw it is no longer there.
class remote_error : public error {
 public:
  /// Of a longer way trace() has the beginning.
  static constexpr std::size_t trace_max = 16;

  /// For the runtime. trace: 1 to trace_max nodes; hops: how many there were, at least as many.
  remote_error(std::string type_name, std::string message, std::vector<std::uint16_t> trace,
               std::size_t hops);

  /// Where it was first thrown.
  [[nodiscard]] std::uint16_t node() const noexcept { return origin_->trace.front(); }
  /// What it was there, as people write it: "std::range_error". Of more than 500 bytes the
  /// beginning, and "..."; "an exception" if the compiler's runtime does not know.
  [[nodiscard]] const std::string& type_name() const noexcept { return origin_->type_name; }
  /// Its what() there: "no such city". Of more than 4,000 bytes the beginning, and "..."; empty if
  /// it was no std::exception.
  [[nodiscard]] const std::string& message() const noexcept { return origin_->message; }
  /// The nodes that it left on its way here, in that order: {2, 1} for one that was thrown on node
  /// 2 in a call of node 1, and thrown on there in a call of this node. A node can be there several
  /// times. Never empty.
  [[nodiscard]] const std::vector<std::uint16_t>& trace() const noexcept { return origin_->trace; }
  /// How many nodes it left: trace().size(), unless that is trace_max.
  [[nodiscard]] std::size_t hops() const noexcept { return origin_->hops; }

 private:
  struct origin {
    std::string type_name, message;
    std::vector<std::uint16_t> trace;
    std::size_t hops;
  };
  std::shared_ptr<const origin> origin_;
};

}  // namespace strata
