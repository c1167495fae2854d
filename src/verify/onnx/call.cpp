#include "verify/onnx/call.h"

#include <algorithm>

namespace hone::onnx {

std::int64_t product(const Sizes& dims) {
  std::int64_t n = 1;
  for (std::int64_t d : dims) n *= d;
  return n;
}

Sizes strides_of(const Sizes& dims) {
  Sizes out(dims.size(), 1);
  for (std::size_t i = dims.size(); i-- > 1;) out[i - 1] = out[i] * dims[i];
  return out;
}

void for_index(const Sizes& dims, const std::function<void(const Sizes&)>& f) {
  double all = 1;
  for (std::int64_t d : dims) all *= static_cast<double>(d);
  if (!(all <= most_of_result)) throw NotJudged();
  Sizes index(dims.size(), 0);
  for (std::int64_t left = product(dims); left > 0; --left) {
    f(index);
    for (std::size_t i = dims.size(); i-- > 0;) {
      if (++index[i] < dims[i]) break;
      index[i] = 0;
    }
  }
}

std::int64_t place(const Sizes& index, const Sizes& strides) {
  std::int64_t at = 0;
  for (std::size_t i = 0; i < index.size(); ++i) at += index[i] * strides[i];
  return at;
}

double at(const Numbers& x, const Sizes& index) {
  return x.values.at(static_cast<std::size_t>(place(index, strides_of(x.dims))));
}

// ---- attributes

const Attribute* Call::find(std::string_view name, Attribute::Kind kind) {
  const Attribute* a = node_.find(name);
  if (!a) return nullptr;
  read_[static_cast<std::size_t>(a - node_.attributes.data())] = true;
  if (a->kind != static_cast<std::int32_t>(kind) || !a->reference.empty()) throw NotJudged();
  return a;
}

std::int64_t Call::integer(std::string_view name, std::int64_t otherwise) {
  const Attribute* a = find(name, Attribute::Kind::integer);
  return a ? a->integer : otherwise;
}

double Call::real(std::string_view name, double otherwise) {
  const Attribute* a = find(name, Attribute::Kind::real);
  return a ? a->real : otherwise;
}

std::string Call::text(std::string_view name, std::string otherwise) {
  const Attribute* a = find(name, Attribute::Kind::text);
  return a ? std::string(a->text) : std::move(otherwise);
}

std::optional<Sizes> Call::integers(std::string_view name) {
  const Attribute* a = find(name, Attribute::Kind::integers);
  return a ? std::optional(a->integers) : std::nullopt;
}

std::vector<double> Call::reals(std::string_view name) {
  const Attribute* a = find(name, Attribute::Kind::reals);
  return a ? std::vector<double>(a->reals.begin(), a->reals.end()) : std::vector<double>();
}

std::vector<std::string> Call::texts(std::string_view name) {
  const Attribute* a = find(name, Attribute::Kind::texts);
  return a ? std::vector<std::string>(a->texts.begin(), a->texts.end())
           : std::vector<std::string>();
}

std::optional<Numbers> Call::tensor(std::string_view name) {
  const Attribute* a = find(name, Attribute::Kind::tensor);
  if (!a) return std::nullopt;
  if (!a->tensor) throw NotJudged();
  std::optional<Numbers> n = numbers_of(*a->tensor);
  if (!n) throw NotJudged();
  return n;
}

const Graph& Call::graph(std::string_view name) {
  const Attribute* a = find(name, Attribute::Kind::graph);
  if (!a || !a->graph) throw NotJudged();
  return *a->graph;
}

Sizes Call::list(std::size_t input) const {
  Sizes out;
  for (double x : in(input).values) out.push_back(static_cast<std::int64_t>(x));
  return out;
}

std::optional<Sizes> Call::list(std::string_view name, std::size_t input) {
  if (has_attribute(name)) return integers(name);
  return has(input) ? std::optional(list(input)) : std::nullopt;
}

std::size_t Call::axis(std::int64_t axis, std::int64_t rank) const {
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= std::max<std::int64_t>(rank, 1)) throw NotJudged();
  return static_cast<std::size_t>(axis);
}

Node Call::as(std::string_view op) {
  read_.assign(read_.size(), true);
  Node out = node_;
  out.op = op;
  return out;
}

bool Call::all_read() const {
  for (bool read : read_)
    if (!read) return false;
  return true;
}

}  // namespace hone::onnx
