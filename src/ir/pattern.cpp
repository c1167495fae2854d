#include "ir/pattern.h"

namespace hone {

Pattern Pattern::any(std::string name) {
  Pattern p;
  p.hole = std::move(name);
  return p;
}

Pattern Pattern::number(double x) {
  Pattern p;
  p.constant = x;
  return p;
}

Pattern Pattern::some_number(std::string name) {
  Pattern p = any(std::move(name));
  p.is_number = true;
  return p;
}

Pattern apply(const Op& op, std::span<const Pattern> operands, Attrs attrs, std::source_location) {
  Pattern p;
  p.op = &op;
  p.operands.assign(operands.begin(), operands.end());
  p.attrs = std::move(attrs);
  return p;
}

Value Match::operator[](std::string_view hole) const {
  for (std::size_t i = 0; i < names_.size(); ++i)
    if (names_[i] == hole) return values_[i];
  throw InternalError("match: no hole '", hole, "'");
}

std::optional<double> uniform_number(Value v) {
  constexpr std::int64_t most = 4096;
  while (v.op().kind == OpKind::movement && v.operand_count() == 1) v = v.operand(0);
  if (!v.is(ops::constant)) return std::nullopt;
  const Array& a = v.attrs().get<Array>("value");
  std::int64_t n = a.count();
  if (n == 0 || n > most) return std::nullopt;
  double first = a.real(0);
  for (std::int64_t i = 1; i < n; ++i)
    if (!(a.real(i) == first)) return std::nullopt;
  return first;
}

}  // namespace hone
