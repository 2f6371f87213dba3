// SPDX-License-Identifier: Apache-2.0
#include "context/unwind.hpp"

#include <cxxabi.h>
#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace strata::detail {
namespace {

using word_type = std::uintptr_t;

#if defined(__x86_64__)
constexpr unsigned register_count = 17;
constexpr unsigned sp_number = 7;
// What strata_switch_context() pushes, from its lowest address: r15 r14 r13 r12 rbx rbp, and the
// return address.
constexpr std::array<unsigned, 7> saved{15, 14, 13, 12, 3, 6, 16};
constexpr unsigned return_number = 16;
constexpr word_type saved_bytes = 56;
#elif defined(__aarch64__)
constexpr unsigned register_count = 33;
constexpr unsigned sp_number = 31;
constexpr std::array<unsigned, 12> saved{19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30};
constexpr unsigned return_number = 30;
constexpr word_type saved_bytes = 160;
#endif

struct registers {
  std::array<word_type, register_count> value{};
  std::array<bool, register_count> known{};
  void set(unsigned number, word_type v) noexcept {
    value[number] = v;
    known[number] = true;
  }
};

// Bytes of a table; past its end everything is zero and `good` is false.
class reader {
 public:
  reader(const std::uint8_t* at, const std::uint8_t* end) noexcept : at_(at), end_(end) {}
  [[nodiscard]] bool more() const noexcept { return good && at_ < end_; }
  [[nodiscard]] const std::uint8_t* at() const noexcept { return at_; }
  template <class T>
  T fixed() noexcept {
    T v{};
    if (!has(sizeof(T))) return v;
    std::memcpy(&v, at_, sizeof v);
    at_ += sizeof v;
    return v;
  }
  std::uint64_t uleb() noexcept {
    std::uint64_t v = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto b = fixed<std::uint8_t>();
      v |= std::uint64_t{b & 0x7fU} << shift;
      if ((b & 0x80U) == 0) break;
    }
    return v;
  }
  std::int64_t sleb() noexcept {
    std::uint64_t v = 0;
    for (unsigned shift = 0; shift < 64;) {
      const auto b = fixed<std::uint8_t>();
      v |= std::uint64_t{b & 0x7fU} << shift;
      shift += 7;
      if ((b & 0x80U) == 0) {
        if ((b & 0x40U) != 0 && shift < 64) v |= ~std::uint64_t{0} << shift;
        break;
      }
    }
    return static_cast<std::int64_t>(v);
  }
  // A pointer in one of the encodings of .eh_frame; bits 4 to 6 say what it is relative to.
  word_type pointer(unsigned encoding) noexcept {
    const auto here = reinterpret_cast<word_type>(at_);
    word_type v = 0;
    switch (encoding & 0x0fU) {
      case 0x0:
      case 0x4:
      case 0xc:
        v = fixed<std::uint64_t>();
        break;
      case 0x2:
        v = fixed<std::uint16_t>();
        break;
      case 0x3:
        v = fixed<std::uint32_t>();
        break;
      case 0xa:
        v = static_cast<word_type>(std::int64_t{fixed<std::int16_t>()});
        break;
      case 0xb:
        v = static_cast<word_type>(std::int64_t{fixed<std::int32_t>()});
        break;
      default:
        good = false;
    }
    if ((encoding & 0x70U) == 0x10U) {
      v += here;
    } else if ((encoding & 0x70U) != 0) {
      good = false;
    }
    return v;
  }
  reader part(std::uint64_t bytes) noexcept {
    if (!has(bytes)) return {end_, end_};
    const std::uint8_t* const begin = at_;
    at_ += bytes;
    return {begin, at_};
  }
  bool good = true;

 private:
  bool has(std::uint64_t bytes) noexcept {
    if (good && bytes <= static_cast<std::uint64_t>(end_ - at_)) return true;
    good = false;
    return false;
  }
  const std::uint8_t* at_;
  const std::uint8_t* end_;
};

enum class rule_kind : std::uint8_t {
  same,
  undefined,
  at_offset,
  is_offset,
  in,
  at_value,
  is_value
};
struct rule {
  rule_kind kind = rule_kind::same;
  std::int64_t offset = 0;  // from the CFA; or the other register's number
  const std::uint8_t* expression = nullptr;
  const std::uint8_t* expression_end = nullptr;
};
struct row {
  unsigned cfa_register = sp_number;
  std::int64_t cfa_offset = 0;
  rule cfa;  // is_value: an expression instead
  std::array<rule, register_count> of{};
};

struct description {
  std::uint64_t code_align = 1;
  std::int64_t data_align = 1;
  std::uint64_t return_column = return_number;
  bool signal = false;
  word_type begin = 0, end = 0;  // of the code it describes
  reader common{nullptr, nullptr};
  reader own{nullptr, nullptr};
};

// Reads the entry at `at` and the one that it refers to.
bool read_description(const std::uint8_t* at, const std::uint8_t* limit, description& d) {
  reader head(at, limit);
  const auto length = head.fixed<std::uint32_t>();
  if (!head.good || length == 0 || length == 0xffff'ffffU) return false;
  reader entry = head.part(length);
  const std::uint8_t* const here = entry.at();
  const auto back = entry.fixed<std::uint32_t>();
  if (!entry.good || back == 0) return false;

  reader common_head(here - back, limit);
  const auto common_length = common_head.fixed<std::uint32_t>();
  if (!common_head.good || common_length == 0 || common_length == 0xffff'ffffU) return false;
  reader common = common_head.part(common_length);
  if (common.fixed<std::uint32_t>() != 0) return false;
  const auto version = common.fixed<std::uint8_t>();
  if (version != 1 && version != 3) return false;
  std::array<char, 9> augmentation{};
  for (std::size_t i = 0; i < augmentation.size(); ++i) {
    augmentation[i] = static_cast<char>(common.fixed<std::uint8_t>());
    if (augmentation[i] == 0) break;
    if (i + 1 == augmentation.size()) return false;
  }
  d.code_align = common.uleb();
  d.data_align = common.sleb();
  d.return_column = version == 1 ? common.fixed<std::uint8_t>() : common.uleb();
  unsigned encoding = 0;
  const bool sized = augmentation[0] == 'z';
  if (sized) {
    reader data = common.part(common.uleb());
    for (std::size_t i = 1; augmentation[i] != 0; ++i) {
      switch (augmentation[i]) {
        case 'R':
          encoding = data.fixed<std::uint8_t>();
          break;
        case 'L':
          (void)data.fixed<std::uint8_t>();
          break;
        case 'P': {
          const unsigned how = data.fixed<std::uint8_t>();
          (void)data.pointer(how);
          break;
        }
        case 'S':
          d.signal = true;
          break;
        case 'B':
        case 'G':
          break;
        default:
          return false;
      }
    }
    if (!data.good) return false;
  } else if (augmentation[0] != 0) {
    return false;
  }
  d.common = common;
  d.begin = entry.pointer(encoding);
  d.end = d.begin + entry.pointer(encoding & 0x0fU);
  if (sized) (void)entry.part(entry.uleb());
  d.own = entry;
  return entry.good && common.good && d.return_column < register_count;
}

// The part of DWARF's stack machine that compilers and linkers use: realigned frames, PLTs.
bool evaluate(reader code, const registers& r, const stack_copy& stack, const word_type* first,
              word_type& result) {
  std::array<word_type, 16> s{};
  std::size_t n = 0;
  if (first != nullptr) s[n++] = *first;
  while (code.more()) {
    const unsigned op = code.fixed<std::uint8_t>();
    word_type v = 0;
    bool push = true;
    if (op >= 0x30 && op <= 0x4f) {  // lit
      v = op - 0x30;
    } else if (op >= 0x70 && op <= 0x8f) {  // breg
      const unsigned number = op - 0x70;
      if (number >= register_count || !r.known[number]) return false;
      v = r.value[number] + static_cast<word_type>(code.sleb());
    } else if (op == 0x08) {
      v = code.fixed<std::uint8_t>();
    } else if (op == 0x09) {
      v = static_cast<word_type>(std::int64_t{code.fixed<std::int8_t>()});
    } else if (op == 0x0a) {
      v = code.fixed<std::uint16_t>();
    } else if (op == 0x0b) {
      v = static_cast<word_type>(std::int64_t{code.fixed<std::int16_t>()});
    } else if (op == 0x10) {
      v = code.uleb();
    } else if (op == 0x11) {
      v = static_cast<word_type>(code.sleb());
    } else if (op == 0x06 || op == 0x23) {  // deref, plus_uconst
      if (n < 1) return false;
      if (op == 0x23) {
        v = s[n - 1] + code.uleb();
      } else if (!stack.word(s[n - 1], v)) {
        return false;
      }
      --n;
    } else if (n >= 2) {
      const word_type b = s[n - 1];
      const word_type a = s[n - 2];
      n -= 2;
      switch (op) {
        case 0x1a:
          v = a & b;
          break;
        case 0x1c:
          v = a - b;
          break;
        case 0x21:
          v = a | b;
          break;
        case 0x22:
          v = a + b;
          break;
        case 0x24:
          v = b < 64 ? a << b : 0;
          break;
        case 0x25:
          v = b < 64 ? a >> b : 0;
          break;
        case 0x2a:
          v = static_cast<std::intptr_t>(a) >= static_cast<std::intptr_t>(b);
          break;
        default:
          return false;
      }
    } else {
      push = false;
    }
    if (!push || n == s.size()) return false;
    s[n++] = v;
  }
  if (!code.good || n == 0) return false;
  result = s[n - 1];
  return true;
}

// Runs instructions up to the row for `pc`.
bool execute(reader code, const description& d, word_type pc, row& now, const row& initial) {
  word_type at = d.begin;
  std::array<row, 4> kept;
  std::size_t kept_count = 0;
  const auto set = [&](std::uint64_t number, rule what) {
    if (number < register_count) now.of[number] = what;
  };
  const auto block = [&](rule_kind kind) {
    rule what{kind, 0, nullptr, nullptr};
    const std::uint64_t bytes = code.uleb();
    reader part = code.part(bytes);
    what.expression = part.at();
    what.expression_end = part.at() + (code.good ? bytes : 0);
    return what;
  };
  while (code.more()) {
    const unsigned op = code.fixed<std::uint8_t>();
    const unsigned low = op & 0x3fU;
    std::uint64_t step = 0;
    switch (op & 0xc0U) {
      case 0x40:
        step = low;
        break;
      case 0x80:
        set(low, {rule_kind::at_offset, static_cast<std::int64_t>(code.uleb()) * d.data_align,
                  nullptr, nullptr});
        break;
      case 0xc0:
        if (low < register_count) now.of[low] = initial.of[low];
        break;
      default:
        switch (op) {
          case 0x00:  // nop
            break;
          case 0x01: {  // set_loc
            return false;
          }
          case 0x02:
            step = code.fixed<std::uint8_t>();
            break;
          case 0x03:
            step = code.fixed<std::uint16_t>();
            break;
          case 0x04:
            step = code.fixed<std::uint32_t>();
            break;
          case 0x05:
          case 0x11:
          case 0x14:
          case 0x15: {  // (val_)offset, extended or signed
            const std::uint64_t number = code.uleb();
            const std::int64_t factor =
                op == 0x05 || op == 0x14 ? static_cast<std::int64_t>(code.uleb()) : code.sleb();
            set(number, {op >= 0x14 ? rule_kind::is_offset : rule_kind::at_offset,
                         factor * d.data_align, nullptr, nullptr});
            break;
          }
          case 0x06: {
            const std::uint64_t number = code.uleb();
            if (number < register_count) now.of[number] = initial.of[number];
            break;
          }
          case 0x07:
            set(code.uleb(), {rule_kind::undefined, 0, nullptr, nullptr});
            break;
          case 0x08:
            set(code.uleb(), {});
            break;
          case 0x09: {
            const std::uint64_t number = code.uleb();
            set(number, {rule_kind::in, static_cast<std::int64_t>(code.uleb()), nullptr, nullptr});
            break;
          }
          case 0x0a:
            if (kept_count == kept.size()) return false;
            kept[kept_count++] = now;
            break;
          case 0x0b:
            if (kept_count == 0) return false;
            now = kept[--kept_count];
            break;
          case 0x0c:
          case 0x12:
            now.cfa_register = static_cast<unsigned>(code.uleb());
            now.cfa_offset =
                op == 0x0c ? static_cast<std::int64_t>(code.uleb()) : code.sleb() * d.data_align;
            now.cfa = {};
            break;
          case 0x0d:
            now.cfa_register = static_cast<unsigned>(code.uleb());
            now.cfa = {};
            break;
          case 0x0e:
            now.cfa_offset = static_cast<std::int64_t>(code.uleb());
            break;
          case 0x13:
            now.cfa_offset = code.sleb() * d.data_align;
            break;
          case 0x0f:
            now.cfa = block(rule_kind::is_value);
            break;
          case 0x10:
          case 0x16: {
            const std::uint64_t number = code.uleb();
            set(number, block(op == 0x10 ? rule_kind::at_value : rule_kind::is_value));
            break;
          }
          case 0x2d:  // AArch64: the return address is signed from here on; the signature is cut
                      // off
            break;
          case 0x2e:  // GNU_args_size
            (void)code.uleb();
            break;
          default:
            return false;
        }
    }
    if (step != 0) {
      at += step * d.code_align;
      if (at > pc) break;
    }
  }
  return code.good;
}

// From a frame to its caller's; false at the end.
bool step(const description& d, word_type pc, const stack_copy& stack, registers& r) {
  row initial;
  if (!execute(d.common, d, ~word_type{0}, initial, initial)) return false;
  row now = initial;
  if (!execute(d.own, d, pc, now, initial)) return false;

  word_type cfa = 0;
  if (now.cfa.kind == rule_kind::is_value) {
    if (!evaluate({now.cfa.expression, now.cfa.expression_end}, r, stack, nullptr, cfa))
      return false;
  } else {
    if (now.cfa_register >= register_count || !r.known[now.cfa_register]) return false;
    cfa = r.value[now.cfa_register] + static_cast<word_type>(now.cfa_offset);
  }
  registers caller = r;
  for (unsigned i = 0; i < register_count; ++i) {
    const rule& what = now.of[i];
    word_type v = 0;
    bool known = true;
    switch (what.kind) {
      case rule_kind::same:
        continue;
      case rule_kind::undefined:
        known = false;
        break;
      case rule_kind::at_offset:
        known = stack.word(cfa + static_cast<word_type>(what.offset), v);
        break;
      case rule_kind::is_offset:
        v = cfa + static_cast<word_type>(what.offset);
        break;
      case rule_kind::in: {
        const auto other = static_cast<std::uint64_t>(what.offset);
        known = other < register_count && r.known[other];
        if (known) v = r.value[other];
        break;
      }
      case rule_kind::at_value:
      case rule_kind::is_value:
        known = evaluate({what.expression, what.expression_end}, r, stack, &cfa, v);
        if (known && what.kind == rule_kind::at_value) known = stack.word(v, v);
        break;
    }
    caller.value[i] = v;
    caller.known[i] = known;
  }
  if (!caller.known[d.return_column]) return false;
  caller.set(return_number, caller.value[d.return_column]);
  if (now.of[sp_number].kind == rule_kind::same) caller.set(sp_number, cfa);
  // Stacks grow downwards: a caller that is not above its callee is none.
  if (caller.value[sp_number] < r.value[sp_number]) return false;
  r = caller;
  return true;
}

word_type plain_address(word_type a) noexcept {
#if defined(__aarch64__)
  return a & 0x0000'ffff'ffff'ffffU;  // without the signature
#else
  return a;
#endif
}

// Binary search in .eh_frame_hdr, whose table has 32-bit offsets from its own begin.
const std::uint8_t* find_entry(const std::uint8_t* index, std::size_t index_bytes, word_type pc) {
  reader head(index, index + index_bytes);
  const auto version = head.fixed<std::uint8_t>();
  const auto frame_encoding = head.fixed<std::uint8_t>();
  const auto count_encoding = head.fixed<std::uint8_t>();
  const auto table_encoding = head.fixed<std::uint8_t>();
  if (version != 1 || table_encoding != 0x3b || (count_encoding & 0x70U) != 0) return nullptr;
  (void)head.pointer(frame_encoding);
  const word_type count = head.pointer(count_encoding);
  struct pair {
    std::int32_t code, entry;
  };
  if (!head.good || count > index_bytes / sizeof(pair)) return nullptr;
  const std::uint8_t* const table = head.at();
  if (count == 0 || table + count * sizeof(pair) > index + index_bytes) return nullptr;
  const auto base = reinterpret_cast<word_type>(index);
  const auto at = [&](word_type i) {
    pair p;
    std::memcpy(&p, table + i * sizeof p, sizeof p);
    return p;
  };
  const auto begin = [&](word_type i) {
    return base + static_cast<word_type>(std::int64_t{at(i).code});
  };
  if (begin(0) > pc) return nullptr;
  word_type low = 0;
  word_type high = count;
  while (high - low > 1) {
    const word_type middle = low + (high - low) / 2;
    (begin(middle) <= pc ? low : high) = middle;
  }
  return index + at(low).entry;
}

}  // namespace

bool stack_copy::word(std::uintptr_t address, std::uintptr_t& value) const noexcept {
  if (address < begin || address - begin > bytes.size() ||
      bytes.size() - (address - begin) < sizeof value)
    return false;
  std::memcpy(&value, bytes.data() + (address - begin), sizeof value);
  return true;
}

loaded_modules::loaded_modules() {
  const auto add = [](dl_phdr_info* info, std::size_t, void* argument) {
    module m;
    m.base = info->dlpi_addr;
    m.path = info->dlpi_name != nullptr ? info->dlpi_name : "";
    m.begin = ~std::uintptr_t{0};
    for (unsigned i = 0; i < info->dlpi_phnum; ++i) {
      const auto& part = info->dlpi_phdr[i];
      const std::uintptr_t begin = m.base + part.p_vaddr;
      if (part.p_type == PT_LOAD) {
        m.begin = std::min(m.begin, begin);
        m.end = std::max(m.end, begin + part.p_memsz);
        if ((part.p_flags & PF_X) != 0) m.code.emplace_back(begin, begin + part.p_memsz);
      } else if (part.p_type == PT_GNU_EH_FRAME) {
        m.index = reinterpret_cast<const std::uint8_t*>(begin);
        m.index_bytes = part.p_memsz;
      }
    }
    static_cast<std::vector<module>*>(argument)->push_back(std::move(m));
    return 0;
  };
  dl_iterate_phdr(add, &modules_);
  for (module& m : modules_) {
    if (m.path.empty()) {
      std::array<char, 4096> exe{};
      const auto n = ::readlink("/proc/self/exe", exe.data(), exe.size() - 1);
      m.path = n > 0 ? exe.data() : "program";
    } else {
      // Nobody unloads it while we read its tables.
      m.handle = dlopen(m.path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
      if (m.handle == nullptr && m.path.find('/') != std::string::npos) m.index = nullptr;
    }
  }
}

loaded_modules::~loaded_modules() {
  for (const module& m : modules_) {
    if (m.handle != nullptr) dlclose(m.handle);
  }
}

const loaded_modules::module* loaded_modules::module_of(std::uintptr_t address) const noexcept {
  for (const module& m : modules_) {
    if (address >= m.begin && address < m.end) return &m;
  }
  return nullptr;
}

bool loaded_modules::is_code(std::uintptr_t address) const noexcept {
  const module* const m = module_of(address);
  if (m == nullptr) return false;
  for (const auto& [begin, end] : m->code) {
    if (address >= begin && address < end) return true;
  }
  return false;
}

std::vector<std::uintptr_t> loaded_modules::backtrace(std::uintptr_t sp, const stack_copy& stack,
                                                      std::size_t depth_max) const {
  std::vector<std::uintptr_t> found;
  registers r;
  for (std::size_t i = 0; i < saved.size(); ++i) {
    word_type v = 0;
    if (!stack.word(sp + i * sizeof v, v)) return found;
    r.set(saved[i], v);
  }
  r.set(sp_number, sp + saved_bytes);
  bool after_call = true;
  while (found.size() < depth_max) {
    const word_type address = plain_address(r.value[return_number]);
    if (address == 0 || !is_code(address - 1)) break;
    found.push_back(address);
    const module& m = *module_of(address - 1);
    if (m.index == nullptr) break;
    // The call is before the return address, perhaps the last instruction of its function.
    const word_type pc = after_call ? address - 1 : address;
    const std::uint8_t* const entry = find_entry(m.index, m.index_bytes, pc);
    const auto* const limit = reinterpret_cast<const std::uint8_t*>(m.end);
    description d;
    if (entry == nullptr || entry >= limit || reinterpret_cast<word_type>(entry) < m.begin) break;
    if (!read_description(entry, limit, d) || pc < d.begin || pc >= d.end) break;
    if (!step(d, pc, stack, r)) break;
    after_call = !d.signal;
  }
  return found;
}

const std::string& loaded_modules::describe(std::uintptr_t return_address) {
  const auto [at, is_new] = names_.try_emplace(return_address);
  if (!is_new) return at->second;
  std::string& text = at->second;
  std::array<char, 64> number{};
  Dl_info info{};
  const std::uintptr_t call = return_address - 1;
  if (dladdr(reinterpret_cast<void*>(call), &info) != 0 && info.dli_sname != nullptr) {
    int status = 0;
    const std::unique_ptr<char, void (*)(void*)> plain(
        abi::__cxa_demangle(info.dli_sname, nullptr, nullptr, &status), &std::free);
    text = plain != nullptr && status == 0 ? plain.get() : info.dli_sname;
    std::snprintf(number.data(), number.size(), " +0x%zx ",
                  static_cast<std::size_t>(return_address -
                                           reinterpret_cast<std::uintptr_t>(info.dli_saddr)));
    text += number.data();
  }
  const module* const m = module_of(call);
  if (m == nullptr) return text;
  std::snprintf(number.data(), number.size(), "+0x%zx)",
                static_cast<std::size_t>(return_address - m->base));
  text += '(';
  text.append(m->path, m->path.rfind('/') + 1);
  return text += number.data();
}

}  // namespace strata::detail
