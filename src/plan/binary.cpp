#include "plan/binary.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "base/error.h"

namespace hone {

static_assert(std::endian::native == std::endian::little, "serialised integers are little-endian");

namespace {

constexpr std::string_view names[] = {
    "memcpy", "memmove", "memset",
    // C mathematics, f64 and f32.
    "fmod", "pow", "exp", "expm1", "log", "log1p", "sin", "cos", "tan", "asin", "acos", "atan",
    "atan2", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc", "tgamma", "lgamma",
    "fmodf", "powf", "expf", "expm1f", "logf", "log1pf", "sinf", "cosf", "tanf", "asinf", "acosf",
    "atanf", "atan2f", "sinhf", "coshf", "tanhf", "asinhf", "acoshf", "atanhf", "erff", "erfcf",
    "tgammaf", "lgammaf",
    // Functions that AddressSanitizer's and ThreadSanitizer's passes call.
    "__asan_report_load1", "__asan_report_load2", "__asan_report_load4", "__asan_report_load8",
    "__asan_report_load16", "__asan_report_load_n", "__asan_report_store1", "__asan_report_store2",
    "__asan_report_store4", "__asan_report_store8", "__asan_report_store16",
    "__asan_report_store_n", "__asan_memcpy", "__asan_memmove", "__asan_memset",
    "__asan_handle_no_return", "__tsan_func_entry", "__tsan_func_exit", "__tsan_read1",
    "__tsan_read2", "__tsan_read4", "__tsan_read8", "__tsan_read16", "__tsan_write1",
    "__tsan_write2", "__tsan_write4", "__tsan_write8", "__tsan_write16", "__tsan_unaligned_read2",
    "__tsan_unaligned_read4", "__tsan_unaligned_read8", "__tsan_unaligned_read16",
    "__tsan_unaligned_write2", "__tsan_unaligned_write4", "__tsan_unaligned_write8",
    "__tsan_unaligned_write16", "__tsan_memcpy", "__tsan_memmove", "__tsan_memset",
    "__asan_set_shadow_00", "__asan_set_shadow_f1", "__asan_set_shadow_f2", "__asan_set_shadow_f3",
    "__asan_set_shadow_f5", "__asan_set_shadow_f8"};

constexpr std::array<char, 8> magic = {'H', 'O', 'N', 'E', 'C', 'O', 'D', '1'};
constexpr std::size_t header_bytes = magic.size() + 8;  // including the hash of what follows

class Writer {
 public:
  template <class T>
  void number(T n) {
    raw(&n, sizeof n);
  }
  void bytes(const void* data, std::size_t size) {
    number<std::uint64_t>(size);
    raw(data, size);
  }
  std::vector<std::byte> out;

 private:
  void raw(const void* data, std::size_t size) {
    if (size == 0) return;
    std::size_t at = out.size();
    out.resize(at + size);
    std::memcpy(out.data() + at, data, size);
  }
};

class Reader {
 public:
  Reader(std::span<const std::byte> in, std::string_view where) : in_(in), where_(where) {}

  template <class T>
  T number() {
    T n;
    std::memcpy(&n, take(sizeof n).data(), sizeof n);
    return n;
  }
  std::span<const std::byte> bytes() { return take(number<std::uint64_t>()); }
  std::string text() {
    std::span<const std::byte> b = bytes();
    return std::string(reinterpret_cast<const char*>(b.data()), b.size());
  }
  // Reads an element count; each element has at least `least` bytes, so the remaining bytes limit
  // it.
  std::uint64_t count(std::size_t least) {
    std::uint64_t n = number<std::uint64_t>();
    if (n > in_.size() / least) refuse();
    return n;
  }
  void end() {
    if (!in_.empty()) refuse();
  }

 private:
  std::span<const std::byte> take(std::uint64_t n) {
    if (n > in_.size()) refuse();
    std::span<const std::byte> out = in_.first(n);
    in_ = in_.subspan(n);
    return out;
  }
  [[noreturn]] void refuse() const {
    throw UserError(where_,
                    ": machine code is truncated or contains a wrong size; compile it again");
  }

  std::span<const std::byte> in_;
  std::string_view where_;
};

void write_content(Writer& w, const Binary& b) {
  w.bytes(b.target.data(), b.target.size());
  w.bytes(b.code.data(), b.code.size());
  w.number<std::uint64_t>(b.entries.size());
  for (const Binary::Entry& e : b.entries) {
    w.bytes(e.name.data(), e.name.size());
    w.number(e.offset);
  }
  w.number<std::uint64_t>(b.helpers.size());
  for (const Binary::HelperSlot& h : b.helpers) {
    w.number(h.offset);
    w.number(h.helper);
  }
}

Binary read_content(Reader r) {
  Binary b;
  b.target = r.text();
  std::span<const std::byte> code = r.bytes();
  b.code.assign(code.begin(), code.end());
  b.entries.resize(r.count(16));
  for (Binary::Entry& e : b.entries) {
    e.name = r.text();
    e.offset = r.number<std::uint64_t>();
  }
  b.helpers.resize(r.count(12));
  for (Binary::HelperSlot& h : b.helpers) {
    h.offset = r.number<std::uint64_t>();
    h.helper = r.number<std::uint32_t>();
  }
  r.end();
  return b;
}

}  // namespace

std::span<const std::string_view> helper_names() { return names; }

std::optional<std::uint32_t> helper_number(std::string_view name) {
  auto it = std::find(std::begin(names), std::end(names), name);
  if (it == std::end(names)) return std::nullopt;
  return static_cast<std::uint32_t>(it - std::begin(names));
}

std::vector<std::byte> serialize(const Binary& b) {
  Writer w;
  for (char c : magic) w.number(c);
  w.number<std::uint64_t>(0);
  write_content(w, b);
  std::span<const std::byte> content = std::span(w.out).subspan(header_bytes);
  std::uint64_t hash = hash_bytes(content.data(), content.size());
  std::memcpy(w.out.data() + magic.size(), &hash, sizeof hash);
  return std::move(w.out);
}

Binary deserialize(std::span<const std::byte> in, std::string_view where) {
  if (in.size() < header_bytes || std::memcmp(in.data(), magic.data(), magic.size()) != 0)
    throw UserError(where, ": is not machine code of this version; compile it again");
  std::uint64_t hash;
  std::memcpy(&hash, in.data() + magic.size(), sizeof hash);
  std::span<const std::byte> content = in.subspan(header_bytes);
  if (hash_bytes(content.data(), content.size()) != hash)
    throw UserError(where, ": machine code is damaged: its hash differs; compile it again");
  Binary b = read_content(Reader(content, where));
  check(b, where);
  return b;
}

Hash128 content_hash(const Binary& b) {
  Writer w;
  write_content(w, b);
  return hash128(w.out);
}

void check(const Binary& b, std::string_view where) {
  for (const Binary::Entry& e : b.entries)
    if (e.offset >= b.code.size())
      throw UserError(where, ": entry '", e.name, "' at byte ", e.offset, " is outside the ",
                      b.code.size(), " bytes of code; compile it again");
  std::vector<std::uint64_t> slots;
  for (const Binary::HelperSlot& h : b.helpers) {
    if (h.helper >= std::size(names))
      throw UserError(where, ": calls helper ", h.helper, ", but this version has ",
                      std::size(names), "; update the program or compile the code again");
    if (h.offset % 8 != 0 || b.code.size() < 8 || h.offset > b.code.size() - 8)
      throw UserError(where, ": helper slot at byte ", h.offset, " is outside the ", b.code.size(),
                      " bytes of code; compile it again");
    slots.push_back(h.offset);
  }
  std::sort(slots.begin(), slots.end());
  if (std::adjacent_find(slots.begin(), slots.end()) != slots.end())
    throw UserError(where, ": two helpers share a slot; compile the code again");
}

}  // namespace hone
