#include <bit>
#include <cmath>
#include <cstdio>
#include <map>
#include <unordered_map>

#include "base/text.h"
#include "ir/function.h"

namespace hone {

namespace {

class Printer {
 public:
  Printer(std::vector<Array>* large, std::size_t inline_bytes)
      : large_(large), inline_bytes_(inline_bytes) {}

  std::string take() { return out_.take(); }

  void function(const Function& f, const std::string& indent) {
    std::vector<NodeId> order = live_nodes(f);
    constexpr std::size_t usual_line = 48;
    out_.reserve(usual_line * order.size());
    std::vector<std::uint32_t> first(f.graph().node_count(), 0);
    symbols(f, order, indent);
    std::uint32_t next = 0;
    for (NodeId n : order) {
      first[n] = next;
      next += static_cast<std::uint32_t>(f.graph().result_count(n));
      node(f, n, first, indent);
    }
    for (const DimCheck& c : f.graph().checks())
      add(indent, "check ", c.a, " == ", c.b, " ", quoted(c.message), "\n");
    add(indent, "return");
    for (std::size_t i = 0; i < f.results().size(); ++i) {
      const Function::Result& r = f.results()[i];
      add(i ? ", %" : " %", first[r.value.node()] + r.value.index(), " ", quoted(r.name));
      if (r.stored_to) add(" stored_to ", *r.stored_to);
    }
    add("\n");
  }

 private:
  struct Quoted {
    std::string_view text;
  };
  static Quoted quoted(std::string_view text) { return {text}; }
  void add_one(Quoted q) {
    out_.add('"');
    for (char c : q.text) {
      if (c == '"' || c == '\\') out_.add('\\');
      if (c == '\n')
        out_.add("\\n");
      else
        out_.add(c);
    }
    out_.add('"');
  }

  // Appends parts without a stream: a graph is as long as its model.
  template <class... Parts>
  [[gnu::always_inline]] void add(const Parts&... parts) {
    (add_one(parts), ...);
  }
  template <class T>
  [[gnu::always_inline]] void add_one(const T& part)
    requires(!std::same_as<T, Quoted>)
  {
    if constexpr (PlainText<T> || PlainInteger<T>)
      out_.add(part);
    else
      out_.add(cat(part));
  }

  void note(const Dim& d, std::map<std::string, Dim>& found) {
    if (d.is_number()) return;
    for (const Dim& s : d.symbols()) found.emplace(s.name(), s);
  }

  void symbols(const Function& f, const std::vector<NodeId>& order, const std::string& indent) {
    std::map<std::string, Dim> found;
    for (NodeId n : order) {
      for (std::size_t i = 0; i < f.graph().result_count(n); ++i)
        for (const Dim& d : f.graph().type(n, i).shape.dims) note(d, found);
      for (const Attrs::Entry& e : f.graph().attrs(n).entries())
        if (auto* dims = std::get_if<Dims>(&e.second))
          for (const Dim& d : *dims) note(d, found);
    }
    for (const DimCheck& c : f.graph().checks()) note(c.a, found), note(c.b, found);
    for (auto& [name, s] : found) add(indent, "symbol ", name, " ", s.low(), " ", s.high(), "\n");
  }

  void node(const Function& f, NodeId n, const std::vector<std::uint32_t>& first,
            const std::string& indent) {
    const Graph& g = f.graph();
    add(indent);
    for (std::size_t i = 0; i < g.result_count(n); ++i) add(i ? ", %" : "%", first[n] + i);
    add(": ");
    for (std::size_t i = 0; i < g.result_count(n); ++i) {
      if (i) add(", ");
      type(g.type(n, i));
    }
    add(" = ", g.op(n).name);
    for (const Value& v : g.operands(n)) add(" %", first[v.node()] + v.index());
    for (const Attrs::Entry& e : g.attrs(n).entries()) {
      add(" ", e.first.text(), "=");
      attr(e.second, indent);
    }
    if (&g.op(n) == &ops::param) {
      const Function::Param& p = f.params()[static_cast<std::size_t>(g.attrs(n).integer("index"))];
      add(" ", quoted(p.name), p.donated ? " donated" : "");
      if (p.capacity) add(" capacity ", p.capacity->axis, " ", p.capacity->size);
      if (p.required) {
        add(" required ");
        data(*p.required);
      }
    }
    add("\n");
  }

  void type(const Type& t) {
    if (!t.is_tensor()) return add(t);
    add(info(t.dtype).name);
    sizes(t.shape.dims);
  }

  void sizes(const Dims& dims) {
    add("[");
    for (std::size_t i = 0; i < dims.size(); ++i) {
      if (i) add(",");
      if (dims[i].is_number())
        add(dims[i].number());
      else
        add(dims[i]);
    }
    add("]");
  }

  void attr(const Attr& a, const std::string& indent) {
    if (auto* n = std::get_if<std::int64_t>(&a)) add(*n);
    if (auto* x = std::get_if<double>(&a)) real(*x);
    if (auto* s = std::get_if<std::string>(&a)) add(quoted(*s));
    if (auto* t = std::get_if<DType>(&a)) add(info(*t).name);
    if (auto* dims = std::get_if<Dims>(&a)) sizes(*dims);
    if (auto* array = std::get_if<Array>(&a)) data(*array);
    if (auto* f = std::get_if<FunctionRef>(&a)) {
      add("{\n");
      function(**f, indent + "  ");
      add(indent, "}");
    }
  }

  // Decimal with all digits; numbers that decimal cannot represent exactly as their bits.
  void real(double x) {
    char text[40];
    if (std::isfinite(x)) {
      std::snprintf(text, sizeof text, "%.17g", x);
      add(text);
      if (std::string_view(text).find_first_of(".e") == std::string_view::npos) add(".0");
    } else {
      std::snprintf(text, sizeof text, "bits:%016llx",
                    static_cast<unsigned long long>(std::bit_cast<std::uint64_t>(x)));
      add(text);
    }
  }

  void data(const Array& a) {
    if (large_ && a.bytes().size() > inline_bytes_) return add("@", large_index(a));
    static constexpr char digits[] = "0123456789abcdef";
    type(a.type());
    add("#");
    for (std::byte b : a.bytes())
      add(digits[static_cast<unsigned>(b) >> 4], digits[static_cast<unsigned>(b) & 15]);
    add(";");
  }

  std::size_t large_index(const Array& a) {
    for (; known_ < large_->size(); ++known_)
      by_hash_.emplace(hash(Attr((*large_)[known_])), known_);
    auto [first, last] = by_hash_.equal_range(hash(Attr(a)));
    for (; first != last; ++first)
      if (equal(Attr((*large_)[first->second]), Attr(a))) return first->second;
    large_->push_back(a);
    return large_->size() - 1;
  }

  Text out_;
  std::vector<Array>* large_;
  std::unordered_multimap<std::uint64_t, std::size_t> by_hash_;  // of the first `known_` in large_
  std::size_t known_ = 0;
  std::size_t inline_bytes_;
};

}  // namespace

std::string print(const Function& f, std::vector<Array>* large, std::size_t inline_bytes) {
  Printer printer(large, inline_bytes);
  printer.function(f, "");
  return printer.take();
}

}  // namespace hone
