#include <algorithm>
#include <bit>
#include <cctype>
#include <charconv>
#include <unordered_map>

#include "base/checked.h"
#include "ir/function.h"

namespace hone {

namespace {

// Recursion only follows nested bodies, at most `deepest` levels.
constexpr int deepest = 64;

class Parser {
 public:
  Parser(std::string_view text, OpLookup ops, std::span<const Array> large)
      : text_(text), ops_(ops), large_(large) {}

  Function parse() {
    Function f = function(0);
    skip_space();
    if (at_ != text_.size()) fail("unexpected text after the function");
    return f;
  }

 private:
  using Symbols = std::unordered_map<std::string, Dim>;

  [[noreturn]] void fail(std::string_view what) const {
    auto line = 1 + std::count(text_.begin(), text_.begin() + static_cast<long>(at_), '\n');
    throw UserError("graph text, line ", line, ": ", what);
  }
  void skip_space() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool eat(std::string_view token) {
    skip_space();
    if (text_.substr(at_).starts_with(token)) return at_ += token.size(), true;
    return false;
  }
  void expect(std::string_view token) {
    if (!eat(token)) fail(cat("expected '", token, "'"));
  }
  // Reads up to white space or one of the given end characters.
  std::string_view word(std::string_view ends = "") {
    skip_space();
    std::size_t start = at_;
    while (at_ < text_.size() && !std::isspace(static_cast<unsigned char>(text_[at_])) &&
           ends.find(text_[at_]) == std::string_view::npos)
      ++at_;
    if (at_ == start) fail("expected a word");
    return text_.substr(start, at_ - start);
  }
  std::int64_t integer(std::string_view s) const {
    std::int64_t n = 0;
    auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), n);
    if (error != std::errc() || end != s.data() + s.size())
      fail(cat("'", s, "' is not an integer"));
    return n;
  }
  std::string string() {
    expect("\"");
    std::string out;
    while (at_ < text_.size() && text_[at_] != '"') {
      char c = text_[at_++];
      if (c == '\\' && at_ < text_.size()) {
        c = text_[at_++];
        if (c == 'n') c = '\n';
      }
      out += c;
    }
    expect("\"");
    return out;
  }
  Dim dim(std::string_view s, const Symbols& symbols) const {
    return parse_dim(s, [&](std::string_view name) -> Dim {
      auto it = symbols.find(std::string(name));
      if (it == symbols.end()) fail(cat("unknown symbol '", name, "'"));
      return it->second;
    });
  }
  // "[a,f(b,c)]": commas inside parentheses belong to the size.
  Dims dims(const Symbols& symbols) {
    expect("[");
    Dims out;
    if (eat("]")) return out;
    std::size_t start = at_;
    for (int depth = 0;; ++at_) {
      if (at_ >= text_.size()) fail("expected ']'");
      char c = text_[at_];
      depth += (c == '(') - (c == ')');
      if (depth == 0 && (c == ',' || c == ']')) {
        out.push_back(dim(text_.substr(start, at_ - start), symbols));
        start = at_ + 1;
        if (c == ']') return ++at_, out;
      }
    }
  }
  Type type(const Symbols& symbols) {
    if (eat("token")) return Type::token();
    std::string_view name = word("[");
    std::optional<DType> dtype = dtype_from_name(name);
    if (!dtype) fail(cat("unknown dtype '", name, "'"));
    Dims sizes = dims(symbols);
    for (const Dim& d : sizes)
      if (d.is_number() && d.number() < 0) fail(cat("size ", d, " is negative"));
    return {*dtype, Shape(std::move(sizes))};
  }
  Value reference(const Values& values) {
    expect("%");
    std::int64_t n = integer(word(","));
    if (n < 0 || n >= static_cast<std::int64_t>(values.size()))
      fail(cat("%", n, " is not defined"));
    return values[static_cast<std::size_t>(n)];
  }

  Function function(int depth) {
    if (depth > deepest) fail(cat("functions are nested more than ", deepest, " levels deep"));
    Function f;
    Symbols symbols;
    Values values;
    while (eat("symbol ")) {
      std::string name(word());
      std::int64_t low = integer(word()), high = integer(word());
      symbols.emplace(name, Dim::symbol(name, low, high));
    }
    while (skip_space(), at_ < text_.size() && text_[at_] == '%') node(f, symbols, values, depth);
    while (eat("check ")) {
      Dim a = dim(word(), symbols);
      expect("==");
      Dim b = dim(word(), symbols);
      f.graph().add_check({a, b, string()});
    }
    expect("return");
    skip_space();
    if (at_ < text_.size() && text_[at_] == '%') do {
        Value v = reference(values);
        std::string name = string();
        f.add_result(v, std::move(name), stored_to(f, v));
      } while (eat(","));
    return f;
  }

  void node(Function& f, const Symbols& symbols, Values& values, int depth) {
    std::size_t results = 0;
    do {
      expect("%");
      if (integer(word(",:")) != static_cast<std::int64_t>(values.size() + results))
        fail(cat("expected %", values.size() + results, "; values must be numbered in order"));
      ++results;
    } while (eat(","));
    expect(":");
    std::vector<Type> types;
    do types.push_back(type(symbols));
    while (eat(","));
    expect("=");
    std::string_view name = word();
    Values operands;
    while (at_ < text_.size() && text_[at_] == ' ' && text_.substr(at_ + 1).starts_with("%"))
      operands.push_back(reference(values));
    Attrs attrs = attributes(symbols, depth);
    if (types.size() != results)
      fail(cat("the node has ", results, " results and ", types.size(),
               " types, expected equal numbers"));
    Value made = name == ops::param.name ? parameter(f, types, attrs)
                                         : operation(f, name, operands, std::move(attrs), types);
    for (std::size_t i = 0; i < results; ++i) values.push_back(made.result(i));
  }

  // After a result: the parameter whose memory holds it after a run, if there is one.
  std::optional<std::uint32_t> stored_to(const Function& f, Value v) {
    if (!eat("stored_to")) return std::nullopt;
    const std::int64_t n = integer(word(","));
    if (n < 0 || n >= std::ssize(f.params()))
      fail(cat("a result is stored to parameter ", n, ", but there are ", f.params().size()));
    const auto index = static_cast<std::uint32_t>(n);
    const Function::Param& p = f.params()[index];
    const bool fits = p.capacity ? same_but_for(*p.capacity, p.value.type(), v.type())
                                 : p.value.type() == v.type();
    if (!p.donated || !fits)
      fail(cat("a result ", v.type(), " is stored to parameter ", n,
               ", expected a donated one of "
               "this type"));
    for (const Function::Result& r : f.results())
      if (r.stored_to == index) fail(cat("two results are stored to parameter ", n));
    return index;
  }

  Value parameter(Function& f, const std::vector<Type>& types, const Attrs& attrs) {
    std::string name = string();
    const bool donated = eat("donated");
    const std::optional<Capacity> room = capacity(types);
    const auto* index = std::get_if<std::int64_t>(attrs.find("index"));
    if (types.size() != 1 || !index || *index != static_cast<std::int64_t>(f.params().size()))
      fail(cat("expected parameter ", f.params().size(), "; parameters must be numbered in order"));
    std::optional<Array> required;
    if (eat("required")) required = contents(types[0]);
    return f.add_param(types[0], {{}, std::move(name), donated, std::move(required), room});
  }

  std::optional<Capacity> capacity(const std::vector<Type>& types) {
    if (!eat("capacity")) return std::nullopt;
    const std::int64_t axis = integer(word()), size = integer(word());
    const Capacity out{static_cast<std::uint32_t>(axis), size};
    if (types.size() != 1 || axis < 0 || !fits(out, types[0]))
      fail(cat("a capacity of ", size, " along axis ", axis,
               " of a parameter, expected one of its axes and room for all its sizes"));
    return out;
  }

  Array contents(const Type& type) {
    skip_space();
    Attr a = text_.substr(at_).starts_with("@") ? large_array() : dtype_or_array({});
    const Array* array = std::get_if<Array>(&a);
    if (!array || array->type() != type)
      fail(cat("the required contents of a parameter must be ", type, ", as the parameter is"));
    return *array;
  }

  Value operation(Function& f, std::string_view name, const Values& operands, Attrs attrs,
                  const std::vector<Type>& types) {
    const Op* op = name == ops::constant.name ? &ops::constant
                   : name == ops::dims.name   ? &ops::dims
                                              : ops_(name);
    if (!op) fail(cat("unknown operation '", name, "'"));
    Value made = f.graph().intern(*op, operands, std::move(attrs));
    if (made.graph().result_types(made.node()) != types)
      fail(cat(name, " is ", types[0], ", expected ", made.type()));
    return made;
  }

  Attrs attributes(const Symbols& symbols, int depth) {
    Attrs attrs;
    while (at_ < text_.size() && text_[at_] == ' ' && at_ + 1 < text_.size() &&
           std::isalpha(static_cast<unsigned char>(text_[at_ + 1]))) {
      std::size_t before = at_;
      std::string_view name = word("=");
      if (!(at_ < text_.size() && text_[at_] == '=')) {
        at_ = before;
        break;
      }
      ++at_;
      std::optional<AttrName> known = AttrName::find(name);
      if (!known) fail(cat("unknown attribute '", name, "'"));
      attrs.set(*known, value(symbols, depth));
    }
    return attrs;
  }

  Attr value(const Symbols& symbols, int depth) {
    char c = at_ < text_.size() ? text_[at_] : ' ';
    if (c == '"') return string();
    if (c == '[') return dims(symbols);
    if (c == '@') return large_array();
    if (c == '{') {
      ++at_;
      auto body = std::make_shared<const Function>(function(depth + 1));
      expect("}");
      return body;
    }
    if (text_.substr(at_).starts_with("bits:")) {
      at_ += 5;
      std::string_view digits = word();
      std::uint64_t bits = 0;
      std::from_chars(digits.data(), digits.data() + digits.size(), bits, 16);
      return std::bit_cast<double>(bits);
    }
    if (std::isalpha(static_cast<unsigned char>(c))) return dtype_or_array(symbols);
    std::string_view s = word();
    if (s.find_first_of(".e") == std::string_view::npos) return integer(s);
    double x = 0;
    auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), x);
    if (error != std::errc() || end != s.data() + s.size()) fail(cat("'", s, "' is not a number"));
    return x;
  }

  Attr large_array() {
    ++at_;
    std::int64_t k = integer(word());
    if (k < 0 || k >= static_cast<std::int64_t>(large_.size()))
      fail(cat("array @", k, " is not in the file"));
    return large_[static_cast<std::size_t>(k)];
  }

  Attr dtype_or_array(const Symbols& symbols) {
    std::string_view name = word("[");
    std::optional<DType> dtype = dtype_from_name(name);
    if (!dtype) fail(cat("unknown value '", name, "'"));
    if (at_ >= text_.size() || text_[at_] != '[') return *dtype;
    std::vector<std::int64_t> sizes;
    for (const Dim& d : dims(symbols)) {
      if (!d.is_number()) fail("the sizes of an array must be numbers");
      sizes.push_back(d.number());
    }
    expect("#");
    std::vector<std::byte> bytes;
    while (at_ + 1 < text_.size() && text_[at_] != ';') {
      unsigned byte = 0;
      auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + at_ + 2, byte, 16);
      if (error != std::errc() || end != text_.data() + at_ + 2)
        fail("expected two hexadecimal digits of an array");
      bytes.push_back(static_cast<std::byte>(byte));
      at_ += 2;
    }
    expect(";");
    return Array(*dtype, std::move(sizes), Storage::from(std::move(bytes)));
  }

  std::string_view text_;
  OpLookup ops_;
  std::span<const Array> large_;
  std::size_t at_ = 0;
};

}  // namespace

Function parse(std::string_view text, OpLookup ops, std::span<const Array> large) {
  return Parser(text, ops, large).parse();
}

}  // namespace hone
