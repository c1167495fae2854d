#include "kernel/kernel.h"

#include <bit>
#include <charconv>
#include <cstdio>
#include <sstream>

#include "ops/ops.h"

namespace hone {

namespace {

constexpr std::string_view loop_prefix = "loop.", register_prefix = "reg.";

std::optional<std::int32_t> numbered(const Dim& symbol, std::string_view prefix) {
  if (!symbol.is_symbol()) return std::nullopt;
  std::string_view name = symbol.name();
  if (!name.starts_with(prefix)) return std::nullopt;
  std::int32_t n = 0;
  const char* end = name.data() + name.size();
  auto [last, error] = std::from_chars(name.data() + prefix.size(), end, n);
  return error == std::errc() && last == end ? std::optional(n) : std::nullopt;
}

std::vector<Type> infer_leaf(const Call& c) { return {Type(c.attrs.get<DType>("dtype"), Shape())}; }

Samples no_samples() { return {}; }

}  // namespace

Dim loop_symbol(VarId var, const Dim& extent) {
  // A loop over nothing has no positions; its symbol still needs a range.
  std::int64_t last = extent.high() > 0 ? extent.high() - 1 : 0;
  return Dim::symbol(cat(loop_prefix, var), 0, last);
}

Dim register_symbol(RegId reg, std::int64_t low, std::int64_t high) {
  return Dim::symbol(cat(register_prefix, reg), low, high);
}

std::optional<VarId> loop_of(const Dim& symbol) { return numbered(symbol, loop_prefix); }
std::optional<RegId> register_of(const Dim& symbol) { return numbered(symbol, register_prefix); }

constinit const Op ops::load = {
    .name = "load",
    .doc = "The element at attribute offset of kernel parameter param, or 0 without memory access.",
    .kind = OpKind::leaf,
    .infer = infer_leaf,
    .samples = no_samples,
};

constinit const Op ops::reg = {
    .name = "reg",
    .doc = "The current value of the kernel's register index.",
    .kind = OpKind::leaf,
    .infer = infer_leaf,
    .samples = no_samples,
};

// ---- text

namespace {

// Every value that is no leaf gets a line of its own before the first statement that uses it.
class KernelPrinter {
 public:
  explicit KernelPrinter(std::ostream& out) : out_(out) {}

  void block(const Block& body, int depth) {
    for (const Stmt& s : body) statement(s, depth);
  }

  std::string name(Value v, int depth) {
    if (!v) return "none";
    if (v.is(ops::constant)) return number(v);
    if (v.is(ops::dims)) return cat(v.dtype(), "(", v.attrs().dims("dims").at(0), ")");
    if (v.is(ops::reg)) return cat("r", v.attrs().integer("index"));
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

  static std::string number(Value v) {
    const Array& a = v.attrs().get<Array>("value");
    if (!is_float(a.dtype())) return cat(a.dtype(), "(", a.integer(0), ")");
    char text[40];
    std::snprintf(text, sizeof text, "%.17g", a.real(0));
    return cat(a.dtype(), "(", text, ")");
  }

  std::string expression(Value v, int depth) {
    std::string operands;
    for (Value operand : v.operands()) operands += cat(" ", name(operand, depth));
    if (v.is(ops::load)) {
      std::string text = cat("load ", v.dtype(), " p", v.attrs().integer("param"), "[",
                             v.attrs().dims("offset").at(0), "]");
      return operands.empty() ? text : text + " if" + operands;
    }
    std::string text(v.op().name);
    if (v.is(ops::cast) || v.is(ops::bitcast)) text += cat(" ", v.dtype());
    return text + operands;
  }

  void statement(const Stmt& s, int depth) {
    using Kind = Stmt::Kind;
    std::string value = s.value ? name(s.value, depth) : "";
    std::string condition = s.condition ? name(s.condition, depth) : "";
    line(depth);
    switch (s.kind) {
      case Kind::loop:
        out_ << kind_name(s.loop) << " loop." << s.var << " < " << s.extent;
        break;
      case Kind::declare:
        out_ << "var r" << s.reg << ": " << s.value.dtype() << " = " << value;
        break;
      case Kind::assign:
        out_ << "r" << s.reg << " = " << value;
        break;
      case Kind::accumulate:
        out_ << "r" << s.reg << " " << s.combine->name << "= " << value;
        break;
      case Kind::store:
        out_ << "p" << s.param << "[" << s.offset << "] = " << value;
        break;
      case Kind::branch:
        break;
      case Kind::fetch:
        out_ << "fetch p" << s.param << "[" << s.offset << "] into cache " << s.cache;
        break;
    }
    if (s.condition) out_ << " if " << condition;
    out_ << "\n";
    if (s.body.empty()) return;
    // What a body computes is not known behind it.
    std::size_t before = written_.size();
    block(s.body, depth + 1);
    for (; written_.size() > before; written_.pop_back()) names_[written_.back()].clear();
  }

  static std::string_view kind_name(LoopKind k) {
    static constexpr std::string_view names[] = {"chunks", "for", "lanes", "across"};
    return names[static_cast<int>(k)];
  }

  std::ostream& out_;
  std::vector<std::string> names_;
  std::vector<NodeId> written_;
  int next_ = 0;
};

void print_hole(std::ostream& out, std::string_view title, const Hole& h) {
  if (h.vars.empty()) return;
  out << title;
  for (VarId v : h.vars) out << " loop." << v;
  out << "\n";
  KernelPrinter printer(out);
  if (h.value) out << "  " << printer.name(h.value, 1) << "\n";
  printer.block(h.stores, 1);
}

template <class List>
void print_list(std::ostream& out, std::string_view title, const List& list) {
  out << " " << title << " [";
  for (std::size_t i = 0; i < list.size(); ++i) out << (i ? "," : "") << list[i];
  out << "]";
}

void print_body(std::ostream& out, const Nest& nest) { KernelPrinter(out).block(nest.body, 0); }

void print_body(std::ostream& out, const Contraction& c) {
  out << "contraction " << c.accumulate << " batch " << c.batch << " m " << c.m << " n " << c.n
      << " k " << c.k << " packed_b " << c.packed_b << " packed_batch " << c.packed_batch
      << " rows " << c.rows << " block " << c.block << " chunk " << c.chunk_rows << "x"
      << c.chunk_columns << " k_block " << c.k_block << " read_a " << static_cast<int>(c.read_a)
      << " a_strides " << c.a_row_stride << "," << c.a_k_stride << "\n";
  print_hole(out, "a", c.a);
  print_hole(out, "b", c.b);
  print_hole(out, "epilogue", c.epilogue);
}

void print_body(std::ostream& out, const Convolution& c) {
  out << "convolution " << c.accumulate << " images " << c.images;
  print_list(out, "in", c.in_size);
  print_list(out, "out", c.out_size);
  print_list(out, "window", c.window);
  print_list(out, "strides", c.strides);
  print_list(out, "dilations", c.dilations);
  print_list(out, "pads_low", c.pads_low);
  out << " groups " << c.groups << " channels " << c.in_channels << "," << c.out_channels
      << " packed_weights " << c.packed_weights << (c.input_is_dense ? " dense" : "") << " block "
      << c.block;
  print_list(out, "tile", c.tile);
  print_list(out, "chunk", c.chunk);
  print_list(out, "in_place", c.in_place_strides);
  out << " panels " << c.chunk_panels << "\n";
  print_hole(out, "input", c.input);
  print_hole(out, "epilogue", c.epilogue);
}

void print_data(std::ostream& out, const Kernel& k) {
  for (std::size_t i = 0; i < k.params.size(); ++i) {
    const KernelParam& p = k.params[i];
    out << "p" << i << ": " << Type(p.dtype, Shape(p.dims)) << " strides " << Shape(p.strides)
        << (p.written ? " written" : "");
    if (p.streams_from > 0) out << " streams from " << p.streams_from;
    out << "\n";
  }
  for (std::size_t i = 0; i < k.scratch.size(); ++i)
    out << "p" << k.params.size() + i << ": scratch " << k.scratch[i].dtype << " x "
        << k.scratch[i].elements << " at " << k.scratch[i].offset << "\n";
  for (const Dim& s : k.sizes) out << "size " << s << " " << s.low() << ".." << s.high() << "\n";
  out << "chunks " << k.chunks << " scratch_bytes " << k.scratch_bytes << "\n";
  std::visit([&](const auto& body) { print_body(out, body); }, k.body);
}

}  // namespace

std::string print(const Kernel& k) {
  std::ostringstream out;
  out << "kernel " << k.name << "\n";
  print_data(out, k);
  return std::move(out).str();
}

Hash128 hash(const Kernel& k) {
  std::ostringstream out;
  print_data(out, k);
  return hash128(out.view());
}

}  // namespace hone
