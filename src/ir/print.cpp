#include <bit>
#include <cmath>
#include <cstdio>
#include <map>
#include <sstream>

#include "ir/function.h"

namespace hone {

namespace {

class Printer {
 public:
  Printer(std::ostream& out, std::vector<Array>* large, std::size_t inline_bytes)
      : out_(out), large_(large), inline_bytes_(inline_bytes) {}

  void function(const Function& f, const std::string& indent) {
    std::vector<NodeId> order = live_nodes(f);
    std::vector<std::uint32_t> first(f.graph().node_count(), 0);
    symbols(f, order, indent);
    std::uint32_t next = 0;
    for (NodeId n : order) {
      first[n] = next;
      next += static_cast<std::uint32_t>(f.graph().result_count(n));
      node(f, n, first, indent);
    }
    for (const DimCheck& c : f.graph().checks())
      out_ << indent << "check " << c.a << " == " << c.b << " " << quoted(c.message) << "\n";
    out_ << indent << "return";
    for (std::size_t i = 0; i < f.results().size(); ++i) {
      Value v = f.result(i);
      out_ << (i ? ", " : " ") << "%" << first[v.node()] + v.index() << " "
           << quoted(f.results()[i].name);
    }
    out_ << "\n";
  }

 private:
  static std::string quoted(std::string_view text) {
    std::string s = "\"";
    for (char c : text) {
      if (c == '"' || c == '\\') s += '\\';
      if (c == '\n')
        s += "\\n";
      else
        s += c;
    }
    return s + '"';
  }

  void note(const Dim& d, std::map<std::string, Dim>& found) {
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
    for (auto& [name, s] : found)
      out_ << indent << "symbol " << name << " " << s.low() << " " << s.high() << "\n";
  }

  void node(const Function& f, NodeId n, const std::vector<std::uint32_t>& first,
            const std::string& indent) {
    const Graph& g = f.graph();
    out_ << indent;
    for (std::size_t i = 0; i < g.result_count(n); ++i)
      out_ << (i ? ", " : "") << "%" << first[n] + i;
    out_ << ": ";
    for (std::size_t i = 0; i < g.result_count(n); ++i) out_ << (i ? ", " : "") << g.type(n, i);
    out_ << " = " << g.op(n).name;
    for (const Value& v : g.operands(n)) out_ << " %" << first[v.node()] + v.index();
    for (const Attrs::Entry& e : g.attrs(n).entries()) {
      out_ << " " << e.first.text() << "=";
      attr(e.second, indent);
    }
    if (&g.op(n) == &ops::param) {
      const Function::Param& p = f.params()[static_cast<std::size_t>(g.attrs(n).integer("index"))];
      out_ << " " << quoted(p.name) << (p.donated ? " donated" : "");
    }
    out_ << "\n";
  }

  void attr(const Attr& a, const std::string& indent) {
    if (auto* n = std::get_if<std::int64_t>(&a)) out_ << *n;
    if (auto* x = std::get_if<double>(&a)) real(*x);
    if (auto* s = std::get_if<std::string>(&a)) out_ << quoted(*s);
    if (auto* t = std::get_if<DType>(&a)) out_ << *t;
    if (auto* dims = std::get_if<Dims>(&a)) out_ << Shape(*dims);
    if (auto* array = std::get_if<Array>(&a)) data(*array);
    if (auto* f = std::get_if<FunctionRef>(&a)) {
      out_ << "{\n";
      function(**f, indent + "  ");
      out_ << indent << "}";
    }
  }

  // Decimal with all digits; anything decimal cannot say exactly as its bits.
  void real(double x) {
    char text[40];
    if (std::isfinite(x)) {
      std::snprintf(text, sizeof text, "%.17g", x);
      out_ << text;
      if (std::string_view(text).find_first_of(".e") == std::string_view::npos) out_ << ".0";
    } else {
      std::snprintf(text, sizeof text, "bits:%016llx",
                    static_cast<unsigned long long>(std::bit_cast<std::uint64_t>(x)));
      out_ << text;
    }
  }

  void data(const Array& a) {
    if (large_ && a.bytes().size() > inline_bytes_) {
      for (std::size_t i = 0; i < large_->size(); ++i)
        if (equal(Attr((*large_)[i]), Attr(a))) {
          out_ << "@" << i;
          return;
        }
      out_ << "@" << large_->size();
      large_->push_back(a);
      return;
    }
    static constexpr char digits[] = "0123456789abcdef";
    out_ << a.type() << "#";
    for (std::byte b : a.bytes())
      out_ << digits[static_cast<unsigned>(b) >> 4] << digits[static_cast<unsigned>(b) & 15];
    out_ << ";";
  }

  std::ostream& out_;
  std::vector<Array>* large_;
  std::size_t inline_bytes_;
};

}  // namespace

std::string print(const Function& f, std::vector<Array>* large, std::size_t inline_bytes) {
  std::ostringstream out;
  Printer(out, large, inline_bytes).function(f, "");
  return std::move(out).str();
}

}  // namespace hone
