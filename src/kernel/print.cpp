// Prints kernels as text. The text is complete: parse_kernel turns it back into the same kernel.
#include <charconv>
#include <cmath>
#include <cstring>
#include <map>
#include <sstream>

#include "kernel/kernel.h"
#include "kernel/walk.h"
#include "ops/ops.h"

namespace hone {

namespace {

// Inside brackets and after "<" a sum needs no parentheses.
std::string plain(const Dim& d) {
  std::string text = cat(d);
  const bool is_sum = !d.is_number() && d.expr()->kind == DimExpr::Kind::sum;
  return is_sum ? text.substr(1, text.size() - 2) : text;
}

struct Range {
  std::int64_t low = 0, high = 0;
  bool operator==(const Range&) const = default;
};

// The range of each symbol that occurs in the kernel.
std::map<std::string, std::pair<Dim, Range>> ranges_of(const Kernel& k) {
  std::map<std::string, std::pair<Dim, Range>> out;
  auto note = [&](const Dim& d) {
    if (d.is_number()) return true;
    for (const Dim& s : d.symbols()) {
      auto [it, fresh] = out.try_emplace(s.name(), s, Range{s.low(), s.high()});
      Range& range = it->second.second;
      range = {std::min(range.low, s.low()), std::max(range.high, s.high())};
    }
    return true;
  };
  for (const KernelParam& p : k.params)
    for (const Dims* list : {&p.dims, &p.strides})
      for (const Dim& d : *list) note(d);
  for (const KernelMemory& m : k.memory) note(m.elements), note(m.offset);
  for (const Dim& s : k.sizes) note(s);
  note(k.chunks), note(k.scratch_bytes);
  for_each_dim(k.body, note);
  return out;
}

// Every value that is not a leaf gets its own line before the first statement that uses it.
class KernelPrinter {
 public:
  KernelPrinter(std::ostream& out, const Kernel& kernel) : out_(out) {
    for (const auto& [name, found] : ranges_of(kernel)) {
      if (std::optional<RegId> r = register_of(found.first)) registers_[*r] = found.second;
      if (std::optional<VarId> v = loop_of(found.first)) loops_[*v] = found.second;
    }
  }

  void block(const Block& body, int depth) {
    for (const Stmt& s : body) statement(s, depth);
  }

  // Prints a statement without its body.
  void alone(const Stmt& s) { head(s, 0); }

  std::string name(Value v, int depth) {
    if (!v) return "none";
    if (v.is(ops::constant)) return number(v);
    if (v.is(ops::dims)) return cat(v.dtype(), "(", plain(v.attrs().dims("dims").at(0)), ")");
    if (v.is(ops::reg)) return register_name(v);
    if (names_.size() <= v.node()) names_.resize(v.node() + 1);
    if (!names_[v.node()].empty()) return names_[v.node()];
    std::string text = expression(v, depth);
    std::string name = cat("%", next_++);
    line(depth) << name << " = " << text << "\n";
    names_[v.node()] = name;
    written_.push_back(v.node());
    return name;
  }

 private:
  std::ostream& line(int depth) {
    return out_ << std::string(static_cast<std::size_t>(depth) * 2, ' ');
  }

  std::string register_name(Value v) const {
    const auto r = static_cast<RegId>(v.attrs().integer("index"));
    auto it = dtypes_.find(r);
    if (it != dtypes_.end() && it->second == v.dtype()) return cat("r", r);
    return cat("r", r, ":", v.dtype());
  }

  // The shortest text with the same bits.
  static std::string number(Value v) {
    const Array& a = v.attrs().get<Array>("value");
    if (!is_float(a.dtype())) return cat(a.dtype(), "(", a.integer(0), ")");
    char text[40];
    const double x = std::isnan(a.real(0)) ? std::nan("") : a.real(0);  // NaN has many codes
    const char* end = std::to_chars(text, text + sizeof text, x).ptr;
    if (std::ranges::equal(Array::scalar(x, a.dtype()).bytes(), a.bytes()))
      return cat(a.dtype(), "(", std::string_view(text, end), ")");
    std::uint64_t bits = 0;
    std::memcpy(&bits, a.bytes().data(), a.bytes().size());
    end = std::to_chars(text, text + sizeof text, bits, 16).ptr;
    return cat(a.dtype(), "(bits:", std::string_view(text, end), ")");
  }

  std::string expression(Value v, int depth) {
    std::string operands;
    for (Value operand : v.operands()) operands += cat(" ", name(operand, depth));
    if (v.is(ops::load)) {
      std::string text = cat("load ", v.dtype(), " p", v.attrs().integer("param"), "[",
                             plain(v.attrs().dims("offset").at(0)), "]");
      return operands.empty() ? text : text + " if" + operands;
    }
    if (v.is(ops::tile_element)) {
      const Dims& at = v.attrs().dims("offset");
      return cat("element ", v.dtype(), " t", v.attrs().integer("index"), "[", plain(at.at(0)),
                 "; ", plain(at.at(1)), "]");
    }
    if (v.is(ops::cast) || v.is(ops::bitcast)) return cat(v.op().name, " ", v.dtype(), operands);
    return cat(v.op().name, operands, attributes(v));
  }

  static std::string attributes(Value v) {
    struct Text {
      std::string operator()(std::int64_t n) const { return cat(n); }
      std::string operator()(double x) const {
        char text[40];
        std::string out(text, std::to_chars(text, text + sizeof text, x).ptr);
        // The point distinguishes it from an integer.
        return out.find_first_of(".en") == std::string::npos ? out + ".0" : out;
      }
      std::string operator()(DType t) const { return cat(t); }
      std::string operator()(const Dims& dims) const { return cat(Shape(dims)); }
      std::string operator()(const std::string&) const { return refuse("a string"); }
      std::string operator()(const FunctionRef&) const { return refuse("a function"); }
      std::string operator()(const Array&) const { return refuse("an array"); }
      static std::string refuse(std::string_view what) {
        throw InternalError("an expression of a kernel has ", what, " as attribute");
      }
    };
    std::string out;
    for (const Attrs::Entry& e : v.attrs().entries())
      out += cat(" ", e.first.text(), "=", std::visit(Text(), e.second));
    return out;
  }

  void statement(const Stmt& s, int depth) {
    head(s, depth);
    body(s.body, depth + 1);
    if (s.otherwise.empty()) return;
    line(depth) << "else\n";
    body(s.otherwise, depth + 1);
  }

  void head(const Stmt& s, int depth) {
    const std::string value = s.value ? name(s.value, depth) : "";
    const std::string condition = s.condition ? name(s.condition, depth) : "";
    line(depth);
    if (s.kind == Stmt::Kind::branch) {
      out_ << "if " << condition;
    } else {
      words(s, value);
      if (s.condition) out_ << " if " << condition;
    }
    out_ << "\n";
  }

  void words(const Stmt& s, const std::string& value) {
    using Kind = Stmt::Kind;
    switch (s.kind) {
      case Kind::loop:
        out_ << kind_name(s.loop) << " loop:" << s.var << " < " << plain(s.extent);
        loop_range(s);
        break;
      case Kind::declare:
        dtypes_[s.reg] = s.value.dtype();
        out_ << "var r" << s.reg << ": " << s.value.dtype();
        if (auto it = registers_.find(s.reg); it != registers_.end())
          out_ << " in " << it->second.low << ".." << it->second.high;
        out_ << " = " << value;
        break;
      case Kind::assign:
        out_ << "r" << s.reg << " = " << value;
        break;
      case Kind::accumulate:
        out_ << "r" << s.reg << " " << s.combine->name << "= " << value;
        break;
      case Kind::store:
        out_ << "p" << s.param << "[" << plain(s.offset) << "] = " << value;
        break;
      case Kind::branch:
        break;
      case Kind::fetch:
        out_ << "fetch p" << s.param << "[" << plain(s.offset) << "] into cache " << s.cache;
        break;
      case Kind::barrier:
        out_ << "barrier";
        if (!(s.extent == Dim(1))) out_ << " of " << plain(s.extent);
        break;
      case Kind::reduce_group:
        out_ << "r" << s.reg << " = group ";
        if (!(s.extent == Dim(1))) out_ << "of " << plain(s.extent) << " ";
        out_ << s.combine->name << " " << value;
        break;
      case Kind::copy_async:
        out_ << "p" << s.param << "[" << plain(s.offset) << "] = async " << window(s.a) << " x "
             << plain(s.extent);
        break;
      case Kind::end_batch:
        out_ << "end batch";
        break;
      case Kind::wait_copies:
        out_ << "wait copies " << plain(s.extent);
        break;
      case Kind::intrinsic:
        out_ << "intrinsic " << s.name;
        break;
      default:
        tile_words(s, value);
    }
  }

  void tile_words(const Stmt& s, const std::string& value) {
    using Kind = Stmt::Kind;
    const std::string tile = cat("t", s.tile);
    if (s.kind == Kind::tile_store) {
      out_ << window(s.a) << " = " << tile;
    } else if (s.kind == Kind::tile_multiply) {
      out_ << tile << " += " << window(s.a) << (s.a_has_columns ? " by column" : "") << " * "
           << window(s.b);
      if (s.k_group != 1) out_ << " in groups of " << s.k_group;
      out_ << " k < " << plain(s.extent);
    } else {
      out_ << tile << " = " << (s.kind == Kind::tile_fill ? value : window(s.a));
    }
    out_ << " columns " << plain(s.columns);
  }

  // Printed only if it does not follow from the extent.
  void loop_range(const Stmt& s) {
    auto it = loops_.find(s.var);
    if (it == loops_.end()) return;
    const Dim usual = loop_symbol(s.var, s.extent);
    if (it->second == Range{usual.low(), usual.high()}) return;
    out_ << " in " << it->second.low << ".." << it->second.high;
  }

  // Values computed in a body are not known after it.
  void body(const Block& statements, int depth) {
    std::size_t before = written_.size();
    block(statements, depth);
    for (; written_.size() > before; written_.pop_back()) names_[written_.back()].clear();
  }

  static std::string window(const TileWindow& w) {
    std::string rows;
    for (std::int64_t r : w.rows) rows += cat(rows.empty() ? "" : ",", r);
    if (!rows.empty()) rows += "; ";
    return cat("p", w.param, "[", plain(w.offset), "; ", rows, plain(w.stride), "]");
  }

  static std::string_view kind_name(LoopKind k) {
    static constexpr std::string_view names[] = {"grid",     "group", "for",
                                                 "unrolled", "lanes", "across"};
    return names[static_cast<int>(k)];
  }

  std::ostream& out_;
  std::map<RegId, Range> registers_;  // those that occur in positions
  std::map<VarId, Range> loops_;
  std::map<RegId, DType> dtypes_;
  std::vector<std::string> names_;
  std::vector<NodeId> written_;
  int next_ = 0;
};

void print_param(std::ostream& out, std::size_t i, const KernelParam& p) {
  out << "p" << i << ": " << p.dtype << Shape(p.dims) << " strides " << Shape(p.strides)
      << (p.written ? " written" : "");
  if (p.streams_from != 0) out << " streams from " << p.streams_from;
  if (p.is_weight) out << " weight";
  out << "\n";
}

}  // namespace

std::string print(const Kernel& k, const Stmt& s) {
  std::ostringstream out;
  KernelPrinter(out, k).alone(s);
  std::string text = std::move(out).str();
  text.pop_back();
  for (std::size_t at; (at = text.find('\n')) != std::string::npos;) text.replace(at, 1, "; ");
  return text;
}

std::string print(const Kernel& k) {
  std::ostringstream out;
  out << "kernel " << k.name << "\n";
  for (const Dim& s : k.sizes) out << "size " << s << " " << s.low() << ".." << s.high() << "\n";
  // Parameters may have sizes that no statement uses.
  for (const auto& [name, found] : ranges_of(k)) {
    const auto& [symbol, range] = found;
    const bool is_size = !loop_of(symbol) && !register_of(symbol);
    if (is_size && std::find(k.sizes.begin(), k.sizes.end(), symbol) == k.sizes.end())
      out << "symbol " << symbol << " " << range.low << ".." << range.high << "\n";
  }
  for (std::size_t i = 0; i < k.params.size(); ++i) print_param(out, i, k.params[i]);
  for (std::size_t i = 0; i < k.memory.size(); ++i) {
    const KernelMemory& m = k.memory[i];
    out << "p" << k.params.size() + i << ": "
        << (m.scope == MemoryScope::group    ? "group "
            : m.scope == MemoryScope::spread ? "spread "
                                             : "scratch ")
        << m.dtype << " x " << plain(m.elements) << " at " << plain(m.offset) << "\n";
  }
  for (std::size_t i = 0; i < k.tiles.size(); ++i)
    out << "t" << i << ": tile " << k.tiles[i].dtype << " " << k.tiles[i].rows << "x"
        << k.tiles[i].columns << "\n";
  if (k.is_aligned) out << "aligned\n";
  out << "chunks " << plain(k.chunks) << "\n";
  if (k.scratch_bytes != Dim(0)) out << "scratch_bytes " << plain(k.scratch_bytes) << "\n";
  KernelPrinter(out, k).block(k.body, 0);
  return std::move(out).str();
}

}  // namespace hone
