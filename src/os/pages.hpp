// SPDX-License-Identifier: Apache-2.0
// A range of virtual memory: addresses now, memory when touched. Stacks and frame pools are cut
// from it.
#pragma once

#include <cstddef>
#include <utility>

namespace strata::os {

/// Bytes of one page of virtual memory.
std::size_t page_bytes() noexcept;

/// `bytes` rounded up to whole pages.
std::size_t round_up_to_pages(std::size_t bytes) noexcept;

/// Gives the whole pages within `bytes` from `at` on memory, as a touch of each would, in one
/// system call. False: the kernel cannot (before Linux 5.14), or has none to give; they get it when
/// they are touched.
bool populate(std::byte* at, std::size_t bytes) noexcept;

/// `bytes`, rounded up to whole pages, of zeroed memory. Takes no lock of the process, so it may be
/// asked for by a handler that has interrupted malloc(). Null: the kernel has none to give.
std::byte* take_pages(std::size_t bytes) noexcept;
/// Back, with the same `bytes`.
void give_pages(std::byte* at, std::size_t bytes) noexcept;

/// Gives the memory of whole pages back; they read as zero afterwards.
void forget_pages(std::byte* at, std::size_t bytes) noexcept;

/// Memory for what lies there comes by single pages, not by the large ones of transparent_hugepage.
void use_small_pages(std::byte* at, std::size_t bytes) noexcept;

/// Owns a readable and writable range of zeroed pages. It costs address space only (no swap is
/// reserved); each page gets memory when first touched. Not synchronised: different threads may use
/// disjoint parts, one thread destroys it when all are done.
class page_range {
 public:
  page_range() = default;

  /// Reserves `bytes`, rounded up to pages. Throws strata::error when the address space or a limit
  /// (ulimit -v) is exhausted.
  explicit page_range(std::size_t bytes);
  ~page_range();
  page_range(page_range&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        bytes_(std::exchange(other.bytes_, 0)),
        splits_(std::exchange(other.splits_, 0)) {}
  page_range& operator=(page_range&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(splits_, other.splits_);
    return *this;
  }

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return bytes_; }

  /// Makes whole pages inaccessible for good: touching them raises SIGSEGV. `offset` and `bytes`
  /// are multiples of the page. Throws strata::error when the kernel has no room for another
  /// mapping (sysctl vm.max_map_count).
  void guard(std::size_t offset, std::size_t bytes);

  /// `count` parts of `bytes` each, `stride` from one to the next, the first at `offset`; all are
  /// multiples of the page. For advise_all().
  struct parts {
    std::size_t offset, stride, bytes, count;
  };
  enum class advice { guard, populate };

  /// Makes all parts inaccessible as guard() does, or gives them memory as a touch of each page
  /// would, many in one system call. Returns how many it has done, from the first on: none where
  /// the kernel cannot (before Linux 6.15), fewer when it lacks memory.
  std::size_t advise_all(const parts& some, advice what) noexcept;

  /// Which of these whole pages have memory, one byte (0 or 1) a page. False when the kernel does
  /// not tell.
  [[nodiscard]] bool residency(std::size_t offset, std::size_t bytes,
                               unsigned char* there) const noexcept;

  /// Gives the memory of whole pages back; they read as zero afterwards. Guards inside stay.
  void decommit(std::size_t offset, std::size_t bytes) noexcept;

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  std::size_t splits_ = 0;  // of its guards, those for which the kernel has split a mapping
};

}  // namespace strata::os
