// Parses kernels from text as written by print: a header with one fact per line, then statements
// nested by indentation. The text is untrusted, so every number is checked.
#include <bit>
#include <charconv>
#include <cstring>
#include <limits>
#include <unordered_map>

#include "kernel/kernel.h"
#include "kernel/walk.h"
#include "ops/ops.h"

namespace hone {

namespace {

using Kind = Stmt::Kind;

// Only nested bodies are parsed recursively.
constexpr int deepest = 64;
// Loops and registers are numbered from 0, with few gaps.
constexpr std::int64_t most_numbers = 1 << 20;

struct Line {
  std::int64_t number = 0;  // in the text
  int depth = 0;
  std::string_view text;
};

// A line being read.
class Reader {
 public:
  explicit Reader(const Line& line) : line_(&line) {}

  template <class... Parts>
  [[noreturn]] void fail(const Parts&... parts) const {
    throw UserError("kernel text, line ", line_->number, ": ", parts...);
  }
  template <class... Parts>
  [[noreturn]] void expected(const Parts&... parts) const {
    const std::string_view rest = line_->text.substr(at_, 40);
    fail("expected ", cat(parts...), ", found ",
         rest.empty() ? "the end of the line" : cat("'", rest, "'"));
  }

  bool at_end() const { return at_ == line_->text.size(); }
  bool next_is(std::string_view token) const { return line_->text.substr(at_).starts_with(token); }
  bool eat(std::string_view token) {
    if (!next_is(token)) return false;
    at_ += token.size();
    return true;
  }
  void expect(std::string_view token) {
    if (!eat(token)) expected("'", token, "'");
  }
  void end() const {
    if (!at_end()) expected("the end of the line");
  }

  // Reads letters, digits and other characters of names.
  std::string_view word(std::string_view what) {
    const std::size_t start = at_;
    auto is_part = [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.';
    };
    while (!at_end() && is_part(line_->text[at_])) ++at_;
    if (at_ == start) expected(what);
    return line_->text.substr(start, at_ - start);
  }
  std::int64_t integer(std::string_view what) {
    std::int64_t n = 0;
    const char *begin = line_->text.data() + at_, *end = line_->text.data() + line_->text.size();
    auto [last, error] = std::from_chars(begin, end, n);
    if (error != std::errc()) expected(what);
    at_ += static_cast<std::size_t>(last - begin);
    return n;
  }
  std::int64_t integer(std::string_view what, std::int64_t low, std::int64_t high) {
    const std::int64_t n = integer(what);
    if (n < low || n > high) fail(what, " must be from ", low, " to ", high, ", got ", n);
    return n;
  }
  DType dtype() {
    const std::string_view name = word("a dtype");
    std::optional<DType> t = dtype_from_name(name);
    if (!t) fail("unknown dtype '", name, "'");
    return *t;
  }
  // Reads up to one of `ends` outside of parentheses, or to the end of the line.
  std::string_view until(std::string_view ends) {
    const std::size_t start = at_;
    for (int depth = 0; !at_end(); ++at_) {
      const char c = line_->text[at_];
      if (depth == 0 && ends.find(c) != std::string_view::npos) break;
      depth += (c == '(') - (c == ')');
    }
    return line_->text.substr(start, at_ - start);
  }
  std::string_view rest() { return line_->text.substr(std::exchange(at_, line_->text.size())); }

 private:
  const Line* line_;
  std::size_t at_ = 0;
};

// True for "p3: ..." and "t0: ...", which declare memory and tiles.
bool declares_memory(std::string_view text) {
  if (!text.starts_with("p") && !text.starts_with("t")) return false;
  const std::size_t end = text.find_first_not_of("0123456789", 1);
  return end != 1 && end != std::string_view::npos && text[end] == ':';
}

std::optional<LoopKind> loop_kind(std::string_view word) {
  static constexpr std::string_view names[] = {"grid",     "group", "for",
                                               "unrolled", "lanes", "across"};
  for (std::size_t i = 0; i < std::size(names); ++i)
    if (names[i] == word) return static_cast<LoopKind>(i);
  return std::nullopt;
}

class KernelParser {
 public:
  explicit KernelParser(std::string_view text) : graph_(std::make_shared<Graph>()) {
    std::int64_t number = 0;
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      std::string_view line = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      ++number;
      const std::size_t indent = std::min(line.find_first_not_of(' '), line.size());
      if (indent == line.size()) continue;
      if (indent % 2 != 0 || indent / 2 > deepest)
        throw UserError("kernel text, line ", number, ": indented by ", indent,
                        " spaces; each level of nesting is two spaces, at most ", deepest,
                        " levels");
      while (line.ends_with(' ')) line.remove_suffix(1);
      lines_.push_back({number, static_cast<int>(indent / 2), line.substr(indent)});
    }
    end_.number = number + 1;
  }

  Kernel parse() {
    Reader first(line());
    first.expect("kernel ");
    kernel_.name = first.rest();
    do ++at_;
    while (header());
    Block body = block(0);
    if (at_ < lines_.size()) {
      Reader r(line());
      if (line().depth > 0) r.fail("indented deeper than the line above allows");
      r.expected("a statement");
    }
    kernel_.graph = graph_;
    kernel_.body = std::move(body);
    return std::move(kernel_);
  }

 private:
  const Line& line() const { return at_ < lines_.size() ? lines_[at_] : end_; }

  // ---- the header

  bool header() {
    if (line().depth > 0) return false;
    Reader r(line());
    if (r.eat("size "))
      kernel_.sizes.push_back(size_symbol(r));
    else if (r.eat("symbol "))
      size_symbol(r);
    else if (r.eat("aligned"))
      kernel_.is_aligned = true;
    else if (r.eat("chunks "))
      kernel_.chunks = size(r);
    else if (r.eat("scratch_bytes "))
      kernel_.scratch_bytes = size(r);
    else if (declares_memory(line().text))
      line().text.starts_with("t") ? tile(r) : buffer(r);
    else
      return false;
    r.end();
    return true;
  }

  std::pair<std::int64_t, std::int64_t> range(Reader& r, std::int64_t least) {
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max() - 1;
    const std::int64_t low = r.integer("a lower bound", least, most);
    r.expect("..");
    return {low, r.integer("an upper bound", low, most)};
  }

  Dim size_symbol(Reader& r) {
    const std::string name(r.word("the name of a size"));
    if (std::isdigit(static_cast<unsigned char>(name[0]))) r.fail("a name starts with a letter");
    r.expect(" ");
    const auto [low, high] = range(r, 0);
    const Dim symbol = Dim::symbol(name, low, high);
    if (!symbols_.emplace(name, symbol).second) r.fail("size ", name, " is given twice");
    return symbol;
  }

  Dim dim(Reader& r, std::string_view ends = " ") {
    const std::string_view text = r.until(ends);
    if (text.empty()) r.expected("a size or position");
    try {
      return parse_dim(text, [&](std::string_view name) -> Dim {
        auto it = symbols_.find(std::string(name));
        if (it == symbols_.end()) throw UserError("'", name, "' is not known here");
        return it->second;
      });
    } catch (const UserError& e) {
      r.fail("in '", text, "': ", e.what());
    }
  }
  Dim size(Reader& r, std::string_view ends = " ") {
    const Dim d = dim(r, ends);
    if (d.high() < 0) r.fail("a size must not be negative, got ", d);
    return d;
  }
  Dims dims(Reader& r, bool are_sizes) {
    Dims out;
    r.expect("[");
    if (r.eat("]")) return out;
    do out.push_back(are_sizes ? size(r, ",]") : dim(r, ",]"));
    while (r.eat(","));
    r.expect("]");
    return out;
  }

  void number_of_line(Reader& r, std::string_view prefix, std::size_t next) {
    r.expect(prefix);
    const std::int64_t n = r.integer("a number");
    if (n != static_cast<std::int64_t>(next))
      r.fail("'", prefix, n, "' out of order: the next number is ", next);
    r.expect(": ");
  }

  void buffer(Reader& r) {
    number_of_line(r, "p", kernel_.params.size() + kernel_.memory.size());
    if (r.eat("group ")) return memory(r, MemoryScope::group);
    if (r.eat("spread ")) return memory(r, MemoryScope::spread);
    if (r.eat("scratch ")) return memory(r, MemoryScope::thread);
    if (!kernel_.memory.empty()) r.fail("parameters come before the kernel's own memory");
    KernelParam p;
    p.dtype = r.dtype();
    p.dims = dims(r, true);
    r.expect(" strides ");
    p.strides = dims(r, false);
    if (p.strides.size() != p.dims.size())
      r.fail(p.dims.size(), " sizes, but ", p.strides.size(), " strides");
    p.written = r.eat(" written");
    if (r.eat(" streams from "))
      p.streams_from = r.integer("bytes", 1, std::numeric_limits<std::int64_t>::max());
    p.is_weight = r.eat(" weight");
    kernel_.params.push_back(std::move(p));
  }

  void memory(Reader& r, MemoryScope scope) {
    KernelMemory m;
    m.scope = scope;
    m.dtype = r.dtype();
    r.expect(" x ");
    m.elements = size(r);
    if (scope != MemoryScope::thread && !m.elements.is_number())
      r.fail("memory of a group has a known size");
    r.expect(" at ");
    m.offset = size(r);
    if (m.offset.is_number() && m.offset.number() % 64 != 0)
      r.fail("memory starts at a multiple of 64 bytes, got ", m.offset);
    kernel_.memory.push_back(std::move(m));
  }

  void tile(Reader& r) {
    constexpr std::int64_t most_elements = 1 << 16;
    number_of_line(r, "t", kernel_.tiles.size());
    r.expect("tile ");
    KernelTile t;
    t.dtype = r.dtype();
    r.expect(" ");
    t.rows = static_cast<int>(r.integer("the rows of a tile", 1, most_elements));
    r.expect("x");
    t.columns = static_cast<int>(r.integer("the columns of a tile", 1, most_elements / t.rows));
    kernel_.tiles.push_back(t);
  }

  // ---- expressions

  // Reads a letter and a number below `count`.
  static int number_below(Reader& r, std::string_view letter, std::size_t count,
                          std::string_view what) {
    r.expect(letter);
    const std::int64_t n = r.integer(cat("the number of a ", what));
    if (n < 0 || n >= static_cast<std::int64_t>(count))
      r.fail(unknown_number(what, letter, n, count));
    return static_cast<int>(n);
  }
  int buffer_number(Reader& r) {
    return number_below(r, "p", kernel_.params.size() + kernel_.memory.size(), "parameter");
  }
  DType buffer_dtype(int p) const {
    const auto i = static_cast<std::size_t>(p);
    return i < kernel_.params.size() ? kernel_.params[i].dtype
                                     : kernel_.memory[i - kernel_.params.size()].dtype;
  }
  int tile_number(Reader& r) { return number_below(r, "t", kernel_.tiles.size(), "tile"); }
  RegId register_number(Reader& r) {
    r.expect("r");
    return static_cast<RegId>(r.integer("the number of a register", 0, most_numbers));
  }
  RegId declared_register(Reader& r) {
    const RegId reg = register_number(r);
    if (!registers_.contains(reg)) r.fail("register r", reg, " is not declared above");
    return reg;
  }

  Value leaf(const Op& op, DType t, Attrs attrs, std::span<const Value> operands = {}) {
    const Type type(t, Shape());
    return graph_->intern_typed(op, operands, attrs, std::span(&type, 1));
  }

  Value operand(Reader& r) {
    if (r.eat("%")) {
      const std::int64_t n = r.integer("the number of a value");
      if (n < 0 || n >= static_cast<std::int64_t>(values_.size()))
        r.fail("%", n, " is not defined");
      return values_[static_cast<std::size_t>(n)];
    }
    if (r.next_is("r")) {
      const RegId reg = register_number(r);
      auto it = registers_.find(reg);
      const bool is_typed = r.eat(":");
      if (!is_typed && it == registers_.end()) r.fail("register r", reg, " is not declared above");
      const DType t = is_typed ? r.dtype() : it->second;
      return leaf(ops::reg, t, {{"index", std::int64_t{reg}}, {"dtype", t}});
    }
    const DType t = r.dtype();
    r.expect("(");
    Value v = is_float(t) ? real(r, t) : integer(r, t);
    r.expect(")");
    return v;
  }

  Value real(Reader& r, DType t) {
    if (r.eat("bits:")) {
      const std::string_view digits = r.until(")");
      std::uint64_t bits = 0;
      auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), bits, 16);
      if (error != std::errc() || end != digits.data() + digits.size())
        r.fail("'", digits, "' is not a hexadecimal number");
      std::vector<std::byte> bytes(static_cast<std::size_t>(byte_size(t)));
      std::memcpy(bytes.data(), &bits, bytes.size());
      return constant(*graph_, Array(t, {}, Storage::from(std::move(bytes))));
    }
    const std::string_view digits = r.until(")");
    double x = 0;
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), x);
    if (error != std::errc() || end != digits.data() + digits.size())
      r.fail("'", digits, "' is not a number");
    return constant(*graph_, Array::scalar(x, t));
  }

  Value integer(Reader& r, DType t) {
    Reader ahead = r;
    const std::string_view digits = ahead.until(")");
    std::int64_t n = 0;
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), n);
    if (error == std::errc() && end == digits.data() + digits.size()) {
      r = ahead;
      return constant(*graph_, Array::scalar_int(n, t));
    }
    const Dim d = dim(r, ")");
    if (d.is_number()) return constant(*graph_, Array::scalar_int(d.number(), t));
    return dims_value(*graph_, {d}, t, {});
  }

  Value condition(Reader& r) {
    Value v = operand(r);
    if (v.dtype() != DType::b1) r.fail("a condition is bool, not ", v.dtype());
    return v;
  }

  // "%3 = add %1 %2"
  void definition() {
    Reader r(line());
    r.expect("%");
    if (r.integer("a number") != static_cast<std::int64_t>(values_.size()))
      r.fail("values are numbered in order: the next one is %", values_.size());
    r.expect(" = ");
    values_.push_back(expression(r));
    r.end();
  }

  Value expression(Reader& r) {
    if (r.eat("load ")) return load(r);
    if (r.eat("element ")) return tile_element(r);
    const std::string_view name = r.word("an operation");
    const Op* op = find_op(name);
    if (!op || op->kind == OpKind::control || !op->infer) r.fail("unknown operation '", name, "'");
    Attrs attrs;
    if (op == &ops::cast || op == &ops::bitcast) {
      r.expect(" ");
      attrs.set("dtype", r.dtype());
    }
    Values operands;
    while (!r.at_end()) {
      r.expect(" ");
      if (auto known = attribute_name(r))
        attrs.set(*known, attribute(r));
      else
        operands.push_back(operand(r));
    }
    const std::vector<Type> types = types_of(r, *op, operands, attrs);
    if (types.size() != 1 || types[0].rank() != 0) r.fail(name, " does not give one number");
    return graph_->intern_typed(*op, operands, attrs, types);
  }

  std::vector<Type> types_of(const Reader& r, const Op& op, const Values& operands,
                             const Attrs& attrs) {
    try {
      return op.infer(Call{op, operands, attrs, *graph_, {}});
    } catch (const std::exception& e) {
      r.fail(e.what());
    }
  }

  std::optional<AttrName> attribute_name(Reader& r) {
    Reader ahead = r;
    const std::string_view text = ahead.until("= ");
    if (!ahead.eat("=")) return std::nullopt;
    std::optional<AttrName> known = AttrName::find(text);
    if (!known) r.fail("unknown attribute '", text, "'");
    r = ahead;
    return known;
  }

  Attr attribute(Reader& r) {
    if (r.next_is("[")) return dims(r, false);
    const std::string_view text = r.until(" ");
    if (std::optional<DType> t = dtype_from_name(text)) return *t;
    const char *begin = text.data(), *end = begin + text.size();
    std::int64_t n = 0;
    if (auto [last, error] = std::from_chars(begin, end, n); error == std::errc() && last == end)
      return n;
    double x = 0;
    if (auto [last, error] = std::from_chars(begin, end, x); error == std::errc() && last == end)
      return x;
    r.fail("'", text, "' is not a number");
  }

  Value load(Reader& r) {
    const DType t = r.dtype();
    r.expect(" ");
    const int param = buffer_number(r);
    const DType held = buffer_dtype(param);
    if (t != held && t != code_dtype(held)) r.fail("p", param, " holds ", held, ", not ", t);
    r.expect("[");
    Attrs attrs = {{"param", std::int64_t{param}}, {"dtype", t}, {"offset", Dims{dim(r, "]")}}};
    r.expect("]");
    Values operands;
    if (r.eat(" if ")) operands.push_back(condition(r));
    return leaf(ops::load, t, std::move(attrs), operands);
  }

  Value tile_element(Reader& r) {
    const DType t = r.dtype();
    r.expect(" ");
    const int tile = tile_number(r);
    r.expect("[");
    Dims at = {dim(r, ";")};
    r.expect("; ");
    at.push_back(dim(r, "]"));
    r.expect("]");
    return leaf(ops::tile_element, t,
                {{"index", std::int64_t{tile}}, {"dtype", t}, {"offset", at}});
  }

  // ---- statements

  Block block(int depth) {
    Block out;
    while (at_ < lines_.size() && line().depth == depth && line().text != "else") {
      if (line().text.starts_with("%"))
        definition(), ++at_;
      else
        out.push_back(statement(depth));
    }
    return out;
  }

  Stmt statement(int depth) {
    const Line& here = line();
    Reader r(here);
    Stmt s = words(r);
    if (s.kind != Kind::branch && r.eat(" if ")) s.condition = condition(r);
    r.end();
    ++at_;
    std::string loop_name;
    if (s.kind == Kind::loop) loop_name = open_loop(s);
    s.body = block(depth + 1);
    if (!loop_name.empty()) symbols_.erase(loop_name);
    if (line().depth == depth && line().text == "else") {
      if (s.kind != Kind::branch) Reader(line()).fail("'else' without 'if'");
      ++at_;
      s.otherwise = block(depth + 1);
    }
    const bool has_body =
        s.kind == Kind::loop || s.kind == Kind::branch || s.kind == Kind::intrinsic;
    if (!has_body && !s.body.empty())
      Reader(here).fail("only loops, 'if' and 'intrinsic' have a body");
    return s;
  }

  std::string open_loop(const Stmt& s) {
    const Dim extent = open_range_ ? Dim(*open_range_ + 1) : s.extent;
    const Dim symbol = loop_symbol(s.var, extent);
    symbols_.insert_or_assign(symbol.name(), symbol);
    return symbol.name();
  }

  Stmt words(Reader& r) {
    if (r.eat("if ")) return {.kind = Kind::branch, .condition = condition(r)};
    if (r.eat("var ")) return declare(r);
    if (r.eat("fetch ")) return fetch(r);
    if (r.eat("barrier of ")) return {.kind = Kind::barrier, .extent = size(r)};
    if (r.eat("barrier")) return {.kind = Kind::barrier};
    if (r.eat("end batch")) return {.kind = Kind::end_batch};
    if (r.eat("wait copies ")) return {.kind = Kind::wait_copies, .extent = size(r)};
    if (r.eat("intrinsic "))
      return {.kind = Kind::intrinsic, .name = std::string(r.word("the name of an intrinsic"))};
    if (starts_with_number(r, "r")) return register_statement(r);
    if (starts_with_number(r, "p")) return memory_statement(r);
    if (starts_with_number(r, "t")) return tile_statement(r);
    Reader ahead = r;
    if (auto kind = loop_kind(ahead.word("a statement"))) return r = ahead, loop(r, *kind);
    r.expected("a statement");
  }

  static bool starts_with_number(const Reader& r, std::string_view letter) {
    Reader ahead = r;
    if (!ahead.eat(letter)) return false;
    return std::string_view("0123456789").find(ahead.rest().substr(0, 1)) != std::string_view::npos;
  }

  Stmt loop(Reader& r, LoopKind kind) {
    Stmt s{.kind = Kind::loop, .loop = kind};
    r.expect(" loop:");
    s.var = static_cast<VarId>(r.integer("the number of a loop", 0, most_numbers));
    if (symbols_.contains(cat("loop:", s.var))) r.fail("loop:", s.var, " is open already");
    r.expect(" < ");
    s.extent = dim(r);
    if ((kind == LoopKind::group || kind == LoopKind::unrolled) && !s.extent.is_number())
      r.fail("the extent of this loop must be a number, got ", s.extent);
    open_range_.reset();
    if (r.eat(" in ")) {
      const auto [low, high] = range(r, 0);
      if (low != 0) r.fail("a loop starts at 0, not at ", low);
      open_range_ = high;
    }
    return s;
  }

  Stmt declare(Reader& r) {
    Stmt s{.kind = Kind::declare, .reg = register_number(r)};
    r.expect(": ");
    const DType t = r.dtype();
    std::optional<Dim> symbol;
    if (r.eat(" in ")) {
      const auto [low, high] = range(r, std::numeric_limits<std::int64_t>::min());
      symbol = register_symbol(s.reg, low, high);
    }
    r.expect(" = ");
    s.value = operand(r);
    if (s.value.dtype() != t) r.fail("r", s.reg, " is ", t, ", its value is ", s.value.dtype());
    registers_[s.reg] = t;
    if (symbol) symbols_.insert_or_assign(symbol->name(), *symbol);
    return s;
  }

  Stmt fetch(Reader& r) {
    Stmt s{.kind = Kind::fetch, .param = buffer_number(r)};
    r.expect("[");
    s.offset = dim(r, "]");
    r.expect("] into cache ");
    s.cache = static_cast<int>(r.integer("the number of a cache", 1, 2));
    return s;
  }

  const Op* joiner(Reader& r) {
    const std::string_view name = r.word("an operation");
    for (const Op* op : {&ops::add, &ops::mul, &ops::maximum, &ops::minimum, &ops::bit_and,
                         &ops::bit_or, &ops::bit_xor})
      if (op->name == name) return op;
    r.fail("registers are not joined by '", name, "'");
  }

  Stmt register_statement(Reader& r) {
    Stmt s{.kind = Kind::assign, .reg = declared_register(r)};
    r.expect(" ");
    if (r.eat("= group ")) {
      s.kind = Kind::reduce_group;
      if (r.eat("of ")) {
        s.extent = r.integer("a number of threads", 2, 32);
        r.expect(" ");
      }
      s.combine = joiner(r);
      r.expect(" ");
    } else if (!r.eat("= ")) {
      s.kind = Kind::accumulate;
      s.combine = joiner(r);
      r.expect("= ");
    }
    s.value = operand(r);
    if (s.value.dtype() != registers_.at(s.reg))
      r.fail("r", s.reg, " is ", registers_.at(s.reg), ", the value is ", s.value.dtype());
    return s;
  }

  // After "pN[": "offset]" or "offset; rows; stride]".
  struct Place {
    TileWindow window;
    bool is_window = false;
  };
  Place place(Reader& r) {
    Place out;
    out.window.param = buffer_number(r);
    r.expect("[");
    out.window.offset = dim(r, "];");
    out.is_window = r.eat("; ");
    if (out.is_window) {
      Reader ahead = r;
      ahead.until(";]");
      if (ahead.next_is(";")) {
        do out.window.rows.push_back(r.integer("the offset of a row"));
        while (r.eat(","));
        r.expect("; ");
      }
      out.window.stride = dim(r, "]");
    }
    r.expect("]");
    return out;
  }
  TileWindow window(Reader& r) {
    Place p = place(r);
    if (!p.is_window) r.expected("'; ' and a stride");
    return std::move(p.window);
  }

  Stmt memory_statement(Reader& r) {
    Place to = place(r);
    r.expect(" = ");
    Stmt s{.kind = Kind::store, .param = to.window.param, .offset = to.window.offset};
    if (to.is_window) {
      s = {.kind = Kind::tile_store, .tile = tile_number(r)};
      s.a = std::move(to.window);
      columns(r, s);
    } else if (r.eat("async ")) {
      s.kind = Kind::copy_async;
      s.a = window(r);
      r.expect(" x ");
      s.extent = size(r);
    } else {
      s.value = operand(r);
    }
    return s;
  }

  void columns(Reader& r, Stmt& s) {
    const KernelTile& t = kernel_.tiles[static_cast<std::size_t>(s.tile)];
    if (s.a.param >= 0 && s.a.rows.size() != static_cast<std::size_t>(t.rows))
      r.fail("t", s.tile, " has ", t.rows, " rows, the window has ", s.a.rows.size());
    r.expect(" columns ");
    s.columns = size(r);
    if (s.columns.is_number() && s.columns.number() > t.columns)
      r.fail("t", s.tile, " has ", t.columns, " columns, not ", s.columns);
  }

  Stmt tile_statement(Reader& r) {
    Stmt s{.kind = Kind::tile_fill, .tile = tile_number(r)};
    if (r.eat(" += ")) {
      s.kind = Kind::tile_multiply;
      s.a = window(r);
      s.a_has_columns = r.eat(" by column");
      r.expect(" * ");
      s.b = window(r);
      if (r.eat(" in groups of "))
        s.k_group = static_cast<int>(r.integer("the size of a group of k", 1, 4096));
      r.expect(" k < ");
      s.extent = size(r);
    } else {
      r.expect(" = ");
      if (starts_with_number(r, "p")) {
        s.kind = Kind::tile_load;
        s.a = window(r);
      } else {
        s.value = operand(r);
      }
    }
    columns(r, s);
    return s;
  }

  std::vector<Line> lines_;
  Line end_;
  std::size_t at_ = 0;
  Kernel kernel_;
  std::shared_ptr<Graph> graph_;
  std::unordered_map<std::string, Dim> symbols_;  // sizes, open loops, registers with a range
  std::unordered_map<RegId, DType> registers_;
  Values values_;
  std::optional<std::int64_t> open_range_;  // of the loop that was just read
};

}  // namespace

Kernel parse_kernel(std::string_view text) { return KernelParser(text).parse(); }

}  // namespace hone
