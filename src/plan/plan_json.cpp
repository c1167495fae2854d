#include "plan/plan_json.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include "base/error.h"

namespace hone {

namespace {

// ---- names of enumerators, in their order

constexpr std::string_view buffer_kinds[] = {"param", "result", "weight", "prepared", "arena"};
constexpr std::string_view step_kinds[] = {"launch", "library", "host",   "copy", "collective",
                                           "record", "wait",    "branch", "loop", "call",
                                           "refuse", "require", "measure"};
constexpr std::string_view guard_kinds[] = {"==", "!=", "<=", ">"};
constexpr std::string_view type_kinds[] = {"tensor", "sequence", "optional", "token"};

template <class Enum>
Enum enumerator(std::span<const std::string_view> names, const Json& j) {
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == j.text_value()) return static_cast<Enum>(i);
  throw UserError("plan: '", j.text_value(), "' is unknown to this version; make the plan again");
}

template <class Enum>
Json enumerator_name(std::span<const std::string_view> names, Enum e) {
  return names[static_cast<std::size_t>(e)];
}

DType read_dtype(const Json& j) {
  if (auto t = dtype_from_name(j.text_value())) return *t;
  throw UserError("plan: element type '", j.text_value(), "' is not known");
}

template <class T>
T read_number(const Json& j) {
  const std::int64_t n = j.integer();
  if (n < 0 || static_cast<std::uint64_t>(n) > std::numeric_limits<T>::max())
    throw UserError("plan: number ", n, " is out of range");
  return static_cast<T>(n);
}

Hash128 read_hash(const Json& j) {
  const std::string& s = j.text_value();
  if (s.size() != 32 || s.find_first_not_of("0123456789abcdef") != std::string::npos)
    throw UserError("plan: '", s, "' is not a hash");
  return {std::stoull(s.substr(0, 16), nullptr, 16), std::stoull(s.substr(16), nullptr, 16)};
}

// Adds what differs from the field's value in an empty object.
void add_if(Json& o, std::string_view key, Json value, const Json& usual) {
  if (!(value == usual)) o.add(std::string(key), std::move(value));
}

// How a step launches its kernel. Compiled code relies on it, so it is also stored with the kernel,
// and a launch of any other form is refused when the plan is read.
std::string launch_form(const Json& step, const Json& symbols) {
  std::string text = symbols.text();
  for (std::string_view key : {"operands", "written", "scalars", "chunks", "scratch_bytes"})
    if (const Json* part = step.find(key)) {
      text += key;
      if (key != "operands") {
        text += part->text();
        continue;
      }
      // Excludes buffer and offset, which the planner chooses.
      for (const Json& view : part->array())
        for (std::size_t i = 2; i < view.array().size(); ++i) text += view.array()[i].text();
    }
  return to_hex(hash128(text));
}

template <class F>
void for_each_launch(const Json& steps, const F& f) {
  for (const Json& s : steps.array()) {
    if (s.at("kind").text_value() == "launch") f(s);
    for (const char* inner : {"body", "otherwise"})
      if (const Json* body = s.find(inner)) for_each_launch(*body, f);
  }
}

std::size_t kernel_of(const Json& launch) {
  const Json* index = launch.find("index");
  return index ? read_number<std::uint32_t>(*index) : 0;
}

// Per kernel: the forms in which steps launch it.
std::vector<std::set<std::string>> launch_forms(const Json& entries, std::size_t kernels) {
  std::vector<std::set<std::string>> out(kernels);
  for (const Json& e : entries.array())
    for (const Json& v : e.at("variants").array())
      for (const char* steps : {"steps", "prepare"})
        for_each_launch(v.at(steps), [&](const Json& s) {
          if (kernel_of(s) < kernels) out[kernel_of(s)].insert(launch_form(s, v.at("symbols")));
        });
  return out;
}

void check_launch_forms(const Json& plan) {
  const Json::Array& kernels = plan.at("kernels").array();
  const auto found = launch_forms(plan.at("entries"), kernels.size());
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    const Json* known = kernels[k].find("forms");
    if (!known) continue;
    for (const std::string& form : found[k])
      if (std::ranges::count(known->array(), Json(form)) == 0)
        throw UserError("plan: a step launches kernel ", k, " ('",
                        kernels[k].at("entry").text_value(),
                        "') with other operands, sizes or chunks than it was compiled for; compile "
                        "the plan again");
  }
}

// ---- writing

class JsonWriter {
 public:
  explicit JsonWriter(const StoreTensor& store) : store_(store) {}

  Json plan(const Plan& p) {
    Json o = Json::Object();
    o.add("name", p.name);
    o.add("strategy", p.strategy);
    o.add("verification", p.verification);
    o.add("measured", p.measured);
    o.add("binaries", list(p.binaries, &JsonWriter::binary));
    o.add("weights", list(p.weights, &JsonWriter::weight));
    o.add("prepared", list(p.prepared, &JsonWriter::prepared));
    add_if(o, "states", list(p.states, &JsonWriter::state), Json::Array());
    o.add("entries", list(p.entries, &JsonWriter::entry));
    o.add("kernels", kernels(p, o.at("entries")));
    o.add("machine", p.machine);
    if (p.content)
      o.add("content", Json::Object{{"version", content_version}, {"hash", to_hex(*p.content)}});
    return o;
  }

  Json devices(const Variant& v) { return list(v.devices, &JsonWriter::device); }

 private:
  template <class List, class T>
  Json list(const List& all, Json (JsonWriter::*one)(const T&)) {
    Json::Array out;
    out.reserve(all.size());
    for (const T& t : all) out.push_back((this->*one)(t));
    return out;
  }

  Json dim(const Dim& d) {
    if (d.is_number()) return d.number();
    for (const Dim& s : d.symbols()) symbols_.emplace(s.name(), s);
    return cat(d);
  }
  Json dims(const Dims& all) { return list(all, &JsonWriter::dim); }
  Json dims_of_plan(const Dims& all) {
    symbols_.swap(of_entry_);
    Json out = dims(all);
    symbols_.swap(of_entry_);
    return out;
  }
  Json symbols() const {
    Json o = Json::Object();
    for (const auto& [name, s] : symbols_) o.add(name, Json::Array{s.low(), s.high()});
    return o;
  }

  Json type(const Type& t) {
    if (t.is_tensor()) return Json::Array{info(t.dtype).name, dims(t.shape.dims)};
    return Json::Object{{"kind", enumerator_name<Type::Kind>(type_kinds, t.kind)},
                        {"element", list(t.element, &JsonWriter::type)}};
  }
  // The file's format has no name for most coded dtypes: their codes are stored.
  Json array(std::string_view name, const Array& a) {
    const Array stored =
        is_coded(a.dtype()) ? Array(code_dtype(a.dtype()), a.dims(), a.storage()) : a;
    return Json::Object{{"dtype", info(a.dtype()).name},
                        {"dims", Json::Array(a.dims().begin(), a.dims().end())},
                        {"tensor", store_(name, stored)}};
  }

  Json state(const PlanState& s) {
    Json o = Json::Object{
        {"name", s.name}, {"group", s.group}, {"type", type(s.type)}, {"offset", s.offset}};
    if (s.start) o.add("start", array("start " + s.name, *s.start));
    if (s.open_axis) o.add("open_axis", *s.open_axis);
    return o;
  }

  // Each entry has its own symbols.
  Json entry(const PlanEntry& e) {
    symbols_.clear();
    Json o = Json::Object{{"name", e.name}};
    o.add("params", list(e.params, &JsonWriter::param));
    o.add("results", list(e.results, &JsonWriter::param));
    o.add("result_alias", Json::Array(e.result_alias.begin(), e.result_alias.end()));
    add_if(o, "states", Json::Array(e.states.begin(), e.states.end()), Json::Array());
    o.add("checks", list(e.checks, &JsonWriter::plan_check));
    o.add("variants", list(e.variants, &JsonWriter::variant));
    o.add("strategies", list(e.strategies, &JsonWriter::strategy));
    o.add("graph_arrays", list(e.graph_arrays, &JsonWriter::graph_array));
    add_if(o, "self_tests", list(e.self_tests, &JsonWriter::self_test), Json::Array());
    o.add("symbols", symbols());
    return o;
  }

  Json param(const PlanParam& p) {
    Json o = Json::Object{{"name", p.name}, {"type", type(p.type)}};
    add_if(o, "donated", p.donated, false);
    if (p.required) o.add("required", array("required " + p.name, *p.required));
    if (p.capacity) o.add("capacity", Json::Array{p.capacity->axis, p.capacity->size});
    return o;
  }
  Json plan_check(const PlanCheck& c) {
    return Json::Object{{"a", dim(c.a)}, {"b", dim(c.b)}, {"message", c.message}};
  }
  Json kernels(const Plan& p, const Json& entries) {
    const auto forms = launch_forms(entries, p.kernels.size());
    Json out = Json::Array{};
    for (std::size_t k = 0; k < p.kernels.size(); ++k) {
      Json o = kernel(p.kernels[k]);
      o.add("forms", Json::Array(forms[k].begin(), forms[k].end()));
      out.push(std::move(o));
    }
    return out;
  }
  Json kernel(const PlanKernel& k) {
    Json o = Json::Object{{"binary", k.binary}, {"entry", k.entry}, {"hash", to_hex(k.hash)}};
    add_if(o, "group_threads", k.group_threads, 1);
    add_if(o, "group_bytes", k.group_bytes, 0);
    return o;
  }
  Json binary(const Binary& b) {
    Json::Array entries, helpers;
    for (const Binary::Entry& e : b.entries) entries.push_back(Json::Array{e.name, e.offset});
    for (const Binary::HelperSlot& h : b.helpers)
      helpers.push_back(Json::Array{h.offset, h.helper});
    const Array code(DType::u8, {static_cast<std::int64_t>(b.code.size())},
                     Storage(nullptr, b.code));
    return Json::Object{{"target", b.target},
                        {"code", array(cat("code.", next_++), code)},
                        {"entries", std::move(entries)},
                        {"helpers", std::move(helpers)},
                        {"hash", to_hex(content_hash(b))}};
  }
  Json weight(const PlanWeight& w) {
    return Json::Object{{"name", w.name}, {"data", array(w.name, w.data)}};
  }
  Json prepared(const PreparedBuffer& p) {
    Json o = Json::Object{{"name", p.name}, {"type", type(p.type)}};
    const Storage content = p.content();
    const Array bytes(DType::u8, {static_cast<std::int64_t>(content.size())}, content);
    if (content.size() > 0) o.add("data", array(cat("prepared.", p.name), bytes));
    return o;
  }
  Json graph_array(const Array& a) { return array(cat("graph.", next_++), a); }

  Json strategy(const StrategyRecord& s) {
    Json o = Json::Object{{"name", s.name}};
    add_if(o, "ms", s.ms, -1.0);
    add_if(o, "low", s.low, -1.0);
    add_if(o, "high", s.high, -1.0);
    add_if(o, "ratio_to_best", s.ratio_to_best, -1.0);
    add_if(o, "max_error", s.max_error, -1.0);
    add_if(o, "error_limit", s.error_limit, -1.0);
    add_if(o, "compile_ms", s.compile_ms, -1.0);
    add_if(o, "peak_bytes", s.peak_bytes, -1);
    add_if(o, "failure", s.failure, "");
    add_if(o, "chosen", s.chosen, false);
    return o;
  }

  static Json numbers(const std::vector<std::int64_t>& all) {
    return Json::Array(all.begin(), all.end());
  }
  Json self_test(const SelfTest& t) {
    Json o = Json::Object{{"variant", t.variant}};
    add_if(o, "missing", t.missing, "");
    if (!t.missing.empty()) return o;
    o.add("exact", t.is_exact);
    o.add("inputs", list(t.inputs, &JsonWriter::self_test_input));
    o.add("results", list(t.results, &JsonWriter::self_test_result));
    return o;
  }
  Json self_test_input(const SelfTestInput& in) {
    if (in.given) return Json::Object{{"given", array("selftest", *in.given)}};
    return Json::Object{{"dtype", info(in.dtype).name},
                        {"dims", numbers(in.dims)},
                        {"seed", in.seed},
                        {"low", in.low},
                        {"high", in.high}};
  }
  // JSON has no number for infinities and NaN.
  static Json value(double x) { return std::isfinite(x) ? Json(x) : Json(cat(x)); }
  Json self_test_result(const SelfTestResult& r) {
    Json values = Json::Array();
    for (double x : r.values) values.push(value(x));
    return Json::Object{{"dims", numbers(r.dims)},
                        {"digest", to_hex(r.digest)},
                        {"places", numbers(r.places)},
                        {"values", std::move(values)},
                        {"allowed", r.allowed}};
  }

  // A variant's symbols may have narrower bounds than the entry's. Guards and checks are
  // evaluated for every size, so they use the entry's symbols.
  Json variant(const Variant& v) {
    Json guards = list(v.guards, &JsonWriter::guard);
    of_entry_ = std::exchange(symbols_, {});
    Json o = variant_fields(v);
    o.add("guards", std::move(guards));
    o.add("symbols", symbols());
    symbols_ = std::exchange(of_entry_, {});
    return o;
  }
  Json variant_fields(const Variant& v) {
    return Json::Object{{"devices", devices(v)},
                        {"events", v.events},
                        {"buffers", list(v.buffers, &JsonWriter::buffer)},
                        {"steps", list(v.steps, &JsonWriter::step)},
                        {"prepare", list(v.prepare, &JsonWriter::step)},
                        {"groups", list(v.groups, &JsonWriter::group)},
                        {"results", list(v.results, &JsonWriter::type)},
                        {"measured", list(v.measured, &JsonWriter::bound)},
                        {"result_bytes", dims(v.result_bytes)}};
  }
  Json device(const PlanDevice& d) {
    return Json::Object{{"name", d.name},
                        {"target", d.target},
                        {"streams", d.streams},
                        {"arena_bytes", dim(d.arena_bytes)},
                        {"arena_lower_bound", dim(d.arena_lower_bound)}};
  }
  Json bound(const DimBound& b) { return Json::Array{dim(b.symbol), dim(b.most)}; }
  Json guard(const Guard& g) {
    return Json::Array{dim(g.a), enumerator_name<Guard::Kind>(guard_kinds, g.kind), dim(g.b)};
  }
  // The first device is omitted.
  Json buffer(const PlanBuffer& b) {
    Json::Array a = {enumerator_name<PlanBuffer::Kind>(buffer_kinds, b.kind), b.index,
                     dim(b.offset), dim(b.bytes)};
    if (b.device != 0) a.push_back(b.device);
    return a;
  }
  // Dense strides are omitted.
  Json view(const View& v) {
    Json::Array a = {v.buffer, dim(v.offset), info(v.dtype).name, dims(v.dims)};
    if (!(v.strides == dense_strides(Shape(v.dims)))) a.push_back(dims(v.strides));
    return a;
  }
  Json step(const Step& s) {
    Json o = Json::Object{{"kind", enumerator_name<Step::Kind>(step_kinds, s.kind)}};
    add_if(o, "device", s.device, 0);
    add_if(o, "stream", s.stream, 0);
    add_if(o, "index", s.index, 0);
    add_if(o, "group", s.group, Step::no_group);
    add_if(o, "name", s.name, "");
    const Json none = Json::Array();
    add_if(o, "operands", list(s.operands, &JsonWriter::view), none);
    add_if(o, "written", Json::Array(s.written.begin(), s.written.end()), none);
    add_if(o, "scalars", s.kind == Step::Kind::refuse ? dims_of_plan(s.scalars) : dims(s.scalars),
           none);
    add_if(o, "chunks", dim(s.chunks), 1);
    add_if(o, "scratch_bytes", dim(s.scratch_bytes), 0);
    Json::Array settings;
    for (const auto& [key, n] : s.settings) settings.push_back(Json::Array{key, n});
    add_if(o, "settings", std::move(settings), none);
    add_if(o, "body", list(s.body, &JsonWriter::step), none);
    add_if(o, "otherwise", list(s.otherwise, &JsonWriter::step), none);
    return o;
  }
  Json group(const GroupRecord& g) {
    return Json::Object{{"name", g.name},
                        {"origins", g.origins},
                        {"chosen", g.chosen},
                        {"reason", g.reason},
                        {"bytes", dim(g.bytes)},
                        {"flops", dim(g.flops)},
                        {"candidates", list(g.candidates(), &JsonWriter::candidate)}};
  }
  Json candidate(const CandidateRecord& c) {
    Json o = Json::Object{{"name", c.name}};
    add_if(o, "ms", c.ms, -1.0);
    add_if(o, "low", c.low, -1.0);
    add_if(o, "high", c.high, -1.0);
    add_if(o, "predicted_ms", c.predicted_ms, -1.0);
    add_if(o, "error", c.error, -1.0);
    add_if(o, "refused", c.refused, "");
    return o;
  }

  const StoreTensor& store_;
  std::map<std::string, Dim> symbols_;
  std::map<std::string, Dim> of_entry_;  // while a variant is written
  int next_ = 0;
};

// ---- reading

class JsonReader {
 public:
  explicit JsonReader(const LoadTensor& load) : load_(load) {}

  Plan plan(const Json& j) {
    check_launch_forms(j);
    Plan p;
    p.name = j.at("name").text_value();
    p.strategy = j.at("strategy").text_value();
    p.verification = j.at("verification").text_value();
    p.measured = j.at("measured").boolean();
    p.states = list_if(j, "states", &JsonReader::state);
    p.entries = list(j.at("entries"), &JsonReader::entry);
    p.kernels = list(j.at("kernels"), &JsonReader::kernel);
    p.binaries = list(j.at("binaries"), &JsonReader::binary);
    p.weights = list(j.at("weights"), &JsonReader::weight);
    p.prepared = list(j.at("prepared"), &JsonReader::prepared);
    p.machine = j.at("machine").text_value();
    // Hashes of another content_version cannot be compared.
    if (const Json* content = j.find("content");
        content && content->at("version").integer() == content_version)
      p.content = read_hash(content->at("hash"));
    return p;
  }

 private:
  template <class T>
  std::vector<T> list(const Json& j, T (JsonReader::*one)(const Json&)) {
    std::vector<T> out;
    out.reserve(j.array().size());
    for (const Json& e : j.array()) out.push_back((this->*one)(e));
    return out;
  }
  template <class T>
  std::vector<T> list_if(const Json& o, std::string_view key, T (JsonReader::*one)(const Json&)) {
    const Json* j = o.find(key);
    return j ? list(*j, one) : std::vector<T>();
  }
  static double real_if(const Json& o, std::string_view key) {
    const Json* j = o.find(key);
    return j ? j->real() : -1;
  }
  static std::string text_if(const Json& o, std::string_view key) {
    const Json* j = o.find(key);
    return j ? j->text_value() : std::string();
  }
  static bool boolean_if(const Json& o, std::string_view key) {
    const Json* j = o.find(key);
    return j && j->boolean();
  }
  template <class T>
  static T number_if(const Json& o, std::string_view key) {
    const Json* j = o.find(key);
    return j ? read_number<T>(*j) : T{0};
  }

  void read_symbols(const Json& j) {
    known_ = {};
    for (const auto& [name, bounds] : j.at("symbols").object()) {
      if (bounds.array().size() != 2) throw UserError("plan: symbol '", name, "' needs two bounds");
      known_.symbols.emplace(
          name, Dim::symbol(name, bounds.array()[0].integer(), bounds.array()[1].integer()));
    }
  }
  Dim dim(const Json& j) {
    if (j.is_integer()) return j.integer();
    auto [at, is_new] = known_.expressions.try_emplace(j.text_value());
    if (is_new)
      at->second = parse_dim(j.text_value(), [&](std::string_view name) {
        for (const Known* k : {&known_, &of_entry_})
          if (auto it = k->symbols.find(name); it != k->symbols.end()) return it->second;
        throw UserError("plan: symbol '", name, "' has no bounds");
      });
    return at->second;
  }
  Dims dims(const Json& j) {
    Dims out;
    out.reserve(j.array().size());
    for (const Json& e : j.array()) out.push_back(dim(e));
    return out;
  }

  Dims dims_if(const Json& o, std::string_view key) {
    const Json* j = o.find(key);
    return j ? dims(*j) : Dims();
  }
  // Of a check: with a variant's narrower bounds it could be simplified to true.
  Dims dims_of_entry_if(const Json& o, std::string_view key) {
    std::swap(known_, of_entry_);
    Dims out = dims_if(o, key);
    std::swap(known_, of_entry_);
    return out;
  }

  Type type(const Json& j) {
    if (j.is_array()) return Type(read_dtype(element(j, 0)), Shape(dims(element(j, 1))));
    Type t;
    t.kind = enumerator<Type::Kind>(type_kinds, j.at("kind"));
    t.element = list(j.at("element"), &JsonReader::type);
    return t;
  }
  static const Json& element(const Json& j, std::size_t i) {
    if (i < j.array().size()) return j.array()[i];
    throw UserError("plan: ", j.text(), " needs more than ", i, " elements");
  }
  Array array(const Json& j) {
    std::vector<std::int64_t> sizes;
    for (const Json& d : j.at("dims").array()) sizes.push_back(d.integer());
    return Array(read_dtype(j.at("dtype")), std::move(sizes),
                 load_(j.at("tensor").text_value()).storage());
  }

  PlanState state(const Json& j) {
    PlanState s{j.at("name").text_value(), j.at("group").text_value(), type(j.at("type")),
                j.at("offset").integer()};
    if (const Json* start = j.find("start")) s.start = array(*start);
    if (const Json* axis = j.find("open_axis")) s.open_axis = read_number<std::uint32_t>(*axis);
    return s;
  }
  static std::vector<std::int32_t> indices(const Json& j) {
    std::vector<std::int32_t> out;
    for (const Json& n : j.array()) {
      const std::int64_t i = n.integer();
      if (i < -1 || i > std::numeric_limits<std::int32_t>::max())
        throw UserError("plan: number ", i, " is out of range");
      out.push_back(static_cast<std::int32_t>(i));
    }
    return out;
  }
  PlanEntry entry(const Json& j) {
    read_symbols(j);
    PlanEntry e;
    e.name = j.at("name").text_value();
    e.params = list(j.at("params"), &JsonReader::param);
    e.results = list(j.at("results"), &JsonReader::param);
    e.result_alias = indices(j.at("result_alias"));
    if (const Json* states = j.find("states")) e.states = indices(*states);
    e.checks = list(j.at("checks"), &JsonReader::plan_check);
    e.variants = list(j.at("variants"), &JsonReader::variant);
    e.strategies = list(j.at("strategies"), &JsonReader::strategy);
    e.graph_arrays = list(j.at("graph_arrays"), &JsonReader::array);
    e.self_tests = list_if(j, "self_tests", &JsonReader::self_test);
    return e;
  }

  PlanParam param(const Json& j) {
    PlanParam p{j.at("name").text_value(), type(j.at("type")), boolean_if(j, "donated")};
    if (const Json* required = j.find("required")) p.required = array(*required);
    if (const Json* c = j.find("capacity"))
      p.capacity = {read_number<std::uint32_t>(element(*c, 0)), element(*c, 1).integer()};
    return p;
  }
  PlanCheck plan_check(const Json& j) {
    return {dim(j.at("a")), dim(j.at("b")), j.at("message").text_value()};
  }
  PlanKernel kernel(const Json& j) {
    PlanKernel k{read_number<std::uint32_t>(j.at("binary")), j.at("entry").text_value(),
                 read_hash(j.at("hash"))};
    if (const Json* n = j.find("group_threads")) k.group_threads = read_number<std::uint32_t>(*n);
    k.group_bytes = number_if<std::uint32_t>(j, "group_bytes");
    return k;
  }
  Binary binary(const Json& j) {
    Binary b;
    b.target = j.at("target").text_value();
    const Array code = array(j.at("code"));
    b.code.assign(code.bytes().begin(), code.bytes().end());
    for (const Json& e : j.at("entries").array())
      b.entries.push_back({element(e, 0).text_value(), read_number<std::uint64_t>(element(e, 1))});
    for (const Json& h : j.at("helpers").array())
      b.helpers.push_back(
          {read_number<std::uint64_t>(element(h, 0)), read_number<std::uint32_t>(element(h, 1))});
    // A jump to a wrong place in the code has undefined effects.
    if (const Json* hash = j.find("hash"); hash && read_hash(*hash) != content_hash(b))
      throw UserError("plan: code for ", b.target,
                      " has other entries than it was compiled with; compile the plan again");
    return b;
  }
  PlanWeight weight(const Json& j) { return {j.at("name").text_value(), array(j.at("data"))}; }
  PreparedBuffer prepared(const Json& j) {
    PreparedBuffer p{j.at("name").text_value(), type(j.at("type")), {}};
    if (const Json* data = j.find("data")) p.data = array(*data).storage();
    return p;
  }
  static std::vector<std::int64_t> numbers(const Json& j) {
    std::vector<std::int64_t> out;
    for (const Json& n : j.array()) out.push_back(n.integer());
    return out;
  }
  SelfTest self_test(const Json& j) {
    SelfTest t;
    t.variant = read_number<std::uint32_t>(j.at("variant"));
    t.missing = text_if(j, "missing");
    if (!t.missing.empty()) return t;
    t.is_exact = j.at("exact").boolean();
    t.inputs = list(j.at("inputs"), &JsonReader::self_test_input);
    t.results = list(j.at("results"), &JsonReader::self_test_result);
    return t;
  }
  SelfTestInput self_test_input(const Json& j) {
    SelfTestInput in;
    if (const Json* given = j.find("given")) {
      in.given = array(*given);
      in.dtype = in.given->dtype();
      in.dims = in.given->dims();
      return in;
    }
    in.dtype = read_dtype(j.at("dtype"));
    in.dims = numbers(j.at("dims"));
    in.seed = read_number<std::uint64_t>(j.at("seed"));
    in.low = j.at("low").real();
    in.high = j.at("high").real();
    return in;
  }
  static double value(const Json& j) {
    if (!j.is_text()) return j.real();
    for (double x :
         {std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()})
      if (j.text_value() == cat(x)) return x;
    return std::numeric_limits<double>::quiet_NaN();
  }
  SelfTestResult self_test_result(const Json& j) {
    SelfTestResult r{numbers(j.at("dims")),
                     read_hash(j.at("digest")),
                     numbers(j.at("places")),
                     {},
                     j.at("allowed").real()};
    for (const Json& x : j.at("values").array()) r.values.push_back(value(x));
    return r;
  }
  StrategyRecord strategy(const Json& j) {
    StrategyRecord s;
    s.name = j.at("name").text_value();
    s.ms = real_if(j, "ms");
    s.low = real_if(j, "low");
    s.high = real_if(j, "high");
    s.ratio_to_best = real_if(j, "ratio_to_best");
    s.max_error = real_if(j, "max_error");
    s.error_limit = real_if(j, "error_limit");
    s.compile_ms = real_if(j, "compile_ms");
    if (const Json* bytes = j.find("peak_bytes")) s.peak_bytes = bytes->integer();
    s.failure = text_if(j, "failure");
    s.chosen = boolean_if(j, "chosen");
    return s;
  }

  Variant variant(const Json& j) {
    Variant v;
    // With the variant's bounds a guard would always be simplified to true.
    v.guards = list(j.at("guards"), &JsonReader::guard);
    of_entry_ = known_;
    read_symbols(j);
    v.devices = list(j.at("devices"), &JsonReader::device);
    v.events = read_number<std::uint32_t>(j.at("events"));
    v.buffers = list(j.at("buffers"), &JsonReader::buffer);
    v.steps = list(j.at("steps"), &JsonReader::step);
    v.prepare = list(j.at("prepare"), &JsonReader::step);
    v.groups = list(j.at("groups"), &JsonReader::group);
    v.results = list(j.at("results"), &JsonReader::type);
    v.measured = list_if(j, "measured", &JsonReader::bound);
    v.result_bytes = dims_if(j, "result_bytes");
    known_ = std::exchange(of_entry_, {});
    return v;
  }
  PlanDevice device(const Json& j) {
    return {j.at("name").text_value(), j.at("target").text_value(),
            read_number<std::uint16_t>(j.at("streams")), dim(j.at("arena_bytes")),
            dim(j.at("arena_lower_bound"))};
  }
  DimBound bound(const Json& j) { return {dim(element(j, 0)), dim(element(j, 1))}; }
  Guard guard(const Json& j) {
    return {enumerator<Guard::Kind>(guard_kinds, element(j, 1)), dim(element(j, 0)),
            dim(element(j, 2))};
  }
  PlanBuffer buffer(const Json& j) {
    PlanBuffer b{enumerator<PlanBuffer::Kind>(buffer_kinds, element(j, 0)),
                 read_number<std::uint32_t>(element(j, 1)), dim(element(j, 2)), dim(element(j, 3))};
    if (j.array().size() > 4) b.device = read_number<std::uint16_t>(element(j, 4));
    return b;
  }
  View view(const Json& j) {
    View v{read_number<std::uint32_t>(element(j, 0)),
           dim(element(j, 1)),
           read_dtype(element(j, 2)),
           dims(element(j, 3)),
           {}};
    v.strides = j.array().size() > 4 ? dims(element(j, 4)) : dense_strides(Shape(v.dims));
    return v;
  }
  Step step(const Json& j) {
    Step s;
    s.kind = enumerator<Step::Kind>(step_kinds, j.at("kind"));
    s.device = number_if<std::uint16_t>(j, "device");
    s.stream = number_if<std::uint16_t>(j, "stream");
    s.index = number_if<std::uint32_t>(j, "index");
    if (const Json* group = j.find("group")) s.group = read_number<std::uint32_t>(*group);
    s.name = text_if(j, "name");
    s.operands = list_if(j, "operands", &JsonReader::view);
    if (const Json* written = j.find("written"))
      for (const Json& w : written->array()) s.written.push_back(w.boolean());
    s.scalars =
        s.kind == Step::Kind::refuse ? dims_of_entry_if(j, "scalars") : dims_if(j, "scalars");
    if (const Json* chunks = j.find("chunks")) s.chunks = dim(*chunks);
    if (const Json* bytes = j.find("scratch_bytes")) s.scratch_bytes = dim(*bytes);
    if (const Json* settings = j.find("settings"))
      for (const Json& e : settings->array())
        s.settings.emplace_back(element(e, 0).text_value(), element(e, 1).integer());
    s.body = list_if(j, "body", &JsonReader::step);
    s.otherwise = list_if(j, "otherwise", &JsonReader::step);
    return s;
  }
  GroupRecord group(const Json& j) {
    return {j.at("name").text_value(),
            j.at("origins").text_value(),
            j.at("chosen").text_value(),
            j.at("reason").text_value(),
            dim(j.at("bytes")),
            dim(j.at("flops")),
            std::make_shared<const std::vector<CandidateRecord>>(
                list(j.at("candidates"), &JsonReader::candidate))};
  }
  CandidateRecord candidate(const Json& j) {
    CandidateRecord c;
    c.name = j.at("name").text_value();
    c.ms = real_if(j, "ms");
    c.low = real_if(j, "low");
    c.high = real_if(j, "high");
    c.predicted_ms = real_if(j, "predicted_ms");
    c.error = real_if(j, "error");
    c.refused = text_if(j, "refused");
    return c;
  }

  const LoadTensor& load_;
  struct Known {
    std::map<std::string, Dim, std::less<>> symbols;
    // One Dim per string, because most occur in many views.
    std::unordered_map<std::string_view, Dim> expressions;
  };
  Known known_;
  Known of_entry_;  // while a variant is read
};

}  // namespace

Json plan_to_json(const Plan& plan, const StoreTensor& store) {
  return JsonWriter(store).plan(plan);
}

Json plan_to_json(const Plan& plan) {
  return plan_to_json(plan, [](std::string_view name, const Array&) { return std::string(name); });
}

Json devices_json(const Variant& v) {
  const StoreTensor none;
  return JsonWriter(none).devices(v);
}

Plan plan_from_json(const Json& j, const LoadTensor& load) { return JsonReader(load).plan(j); }

}  // namespace hone
