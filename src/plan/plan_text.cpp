#include "plan/plan_text.h"

#include "base/error.h"

namespace hone {

std::string_view name_of(Step::Kind kind) {
  static constexpr std::string_view names[] = {"launch", "library", "host",   "copy",  "collective",
                                               "record", "wait",    "if",     "while", "call",
                                               "refuse", "require", "measure"};
  return names[static_cast<int>(kind)];
}

std::string_view name_of(PlanBuffer::Kind kind) {
  static constexpr std::string_view names[] = {"param", "result", "weight", "prepared", "arena"};
  return names[static_cast<int>(kind)];
}

std::string guard_text(const Guard& g) {
  static constexpr std::string_view signs[] = {" == ", " != ", " <= ", " > "};
  return cat(g.a, signs[static_cast<int>(g.kind)], g.b);
}

namespace {

std::string view_text(const View& v) {
  std::string out = cat("b", v.buffer);
  if (v.offset != Dim(0)) out += cat("+", v.offset);
  return out + cat(Shape(v.dims));
}

// Where a step of several devices and streams runs.
std::string where_text(const Variant& v, const Step& s) {
  if (v.devices.size() == 1 && v.devices[0].streams == 1) return "";
  return cat("d", s.device, "s", s.stream, " ");
}

std::string step_text(const Step& s) {
  std::string line = cat(name_of(s.kind), s.name.empty() ? "" : " ", s.name);
  if (s.kind == Step::Kind::record || s.kind == Step::Kind::wait) line += cat(" event ", s.index);
  if (s.kind == Step::Kind::launch) line += cat(" kernel ", s.index, " x ", s.chunks);
  for (std::size_t i = 0; i < s.operands.size(); ++i)
    line += (i < s.written.size() && s.written[i] ? " -> " : " ") + view_text(s.operands[i]);
  for (std::size_t i = 0; i < s.scalars.size(); ++i)
    line += cat(i ? ", " : " sizes ", s.scalars[i]);
  for (const auto& [name, value] : s.settings) line += cat(" ", name, "=", value);
  return line;
}

std::string buffer_text(const Variant& v, const PlanBuffer& b) {
  std::string line = cat(name_of(b.kind));
  if (v.devices.size() > 1) line += cat(" of d", b.device);
  if (b.kind == PlanBuffer::Kind::arena)
    line += cat(" at ", b.offset);
  else
    line += cat(" ", b.index);
  return line + cat(", ", b.bytes, " bytes");
}

}  // namespace

std::string steps_text(const Variant& v, const std::vector<Step>& steps, int depth) {
  const std::string indent(static_cast<std::size_t>(depth) * 2, ' ');
  std::string out;
  for (const Step& s : steps) {
    out += indent + where_text(v, s) + step_text(s) + "\n" + steps_text(v, s.body, depth + 1);
    if (!s.otherwise.empty()) out += indent + "else\n" + steps_text(v, s.otherwise, depth + 1);
  }
  return out;
}

std::string device_text(const PlanDevice& d) {
  std::string out = cat(d.name, d.name.empty() ? "" : " ", d.target);
  if (d.streams != 1) out += cat(", ", d.streams, " streams");
  return out + cat(", arena ", d.arena_bytes, " bytes, lower bound ", d.arena_lower_bound);
}

std::string devices_text(const Variant& v) {
  std::string out;
  for (const PlanDevice& d : v.devices) out += cat(out.empty() ? "" : "; ", device_text(d));
  return out;
}

std::string targets_text(const Variant& v) {
  std::string out;
  for (const PlanDevice& d : v.devices) out += cat(out.empty() ? "" : " + ", d.target);
  return out;
}

std::string variant_text(const Variant& v) {
  std::string out;
  for (std::size_t i = 0; i < v.devices.size(); ++i)
    out += cat("d", i, ": ", device_text(v.devices[i]), "\n");
  for (const Guard& g : v.guards) out += cat("when ", guard_text(g), "\n");
  for (std::size_t i = 0; i < v.buffers.size(); ++i)
    out += cat("b", i, ": ", buffer_text(v, v.buffers[i]), "\n");
  for (const DimBound& b : v.measured) out += cat("data decides ", b.symbol, " <= ", b.most, "\n");
  if (!v.prepare.empty()) out += "prepare\n" + steps_text(v, v.prepare, 1);
  return out + "run\n" + steps_text(v, v.steps, 1);
}

}  // namespace hone
