#include "codegen/c/skeleton.h"

#include "ops/ops.h"

namespace hone::c {

Tile::Tile(Text& out, Helpers& helpers, DType dtype, int rows, int vectors, int lanes)
    : out_(out),
      type_(Helpers::vector_type(dtype, lanes)),
      macro_(helpers.vector(dtype, lanes)),
      dtype_(dtype),
      rows_(rows),
      vectors_(vectors),
      lanes_(lanes) {}

void Tile::declare_vectors(std::string_view prefix, int rows) const {
  for (int r = 0; r < rows; ++r) {
    std::string names;
    for (int v = 0; v < vectors_; ++v)
      names += cat(v ? ", " : "", prefix, rows > 1 || prefix == "s" ? cat(r, "_") : "", v);
    out_.line(type_, " ", names, ";");
  }
}

void Tile::declare() const { declare_vectors("s", rows_); }

void Tile::zero() const {
  for (int r = 0; r < rows_; ++r)
    for (int v = 0; v < vectors_; ++v) out_.line(macro_, "_ZERO(", sum(r, v), ");");
}

void Tile::load(const std::string& from) const {
  for (int r = 0; r < rows_; ++r)
    for (int v = 0; v < vectors_; ++v)
      out_.line(macro_, "_LOAD(", sum(r, v), ", ", from, " + ", (r * vectors_ + v) * lanes_, ");");
}

void Tile::store(const std::string& to) const {
  for (int r = 0; r < rows_; ++r)
    for (int v = 0; v < vectors_; ++v)
      out_.line(macro_, "_STORE(", to, " + ", (r * vectors_ + v) * lanes_, ", ", sum(r, v), ");");
}

void Tile::multiply_add(const Product& p) const {
  const std::string_view element = is_float(dtype_) ? memory_type(dtype_) : wrapping_type(dtype_);
  out_.line("const ", memory_type(dtype_), " *a = ", p.a, ";");
  out_.open("for (int64_t k = 0; k < ", p.count, "; ++k)");
  declare_vectors("b", 1);
  out_.line(element, " factor;");
  const std::string row_of_b = p.row_of_b("k");
  out_.line("const ", memory_type(dtype_), " *const b = ", row_of_b, ";");
  for (int v = 0; v < vectors_; ++v) {
    if (p.columns.empty())
      out_.line(macro_, "_LOAD(b", v, ", b + ", v * lanes_, ");");
    else
      out_.line(macro_, "_LOAD_PART(b", v, ", b + ", v * lanes_, ", ", p.columns, " - ", v * lanes_,
                ");");
  }
  for (int r = 0; r < rows_; ++r) {
    out_.line("factor = (", element, ")a[", p.offsets[static_cast<std::size_t>(r)], "];");
    for (int v = 0; v < vectors_; ++v)
      out_.line(macro_, "_MULADD(", sum(r, v), ", factor, b", v, ");");
  }
  out_.line("a += ", p.step, ";");
  out_.close();
}

void Tile::multiply_add_side_by_side(const std::string& x, const std::string& w,
                                     std::span<const std::int64_t> offsets) const {
  out_.open();
  out_.line(type_, " x, w;");
  for (int v = 0; v < vectors_; ++v) {
    out_.line(macro_, "_LOAD(w, ", w, " + ", v * lanes_, ");");
    for (int r = 0; r < rows_; ++r) {
      out_.line(macro_, "_LOAD(x, ", x, " + ",
                index(offsets[static_cast<std::size_t>(r)] + std::int64_t{v} * lanes_), ");");
      out_.line(macro_, "_MULADD2(", sum(r, v), ", x, w);");
    }
  }
  out_.close();
}

void write_elements(const Site& site, const Hole& hole, std::span<const std::string> vars,
                    std::size_t along, const std::string& count, DType dtype,
                    const std::string& to) {
  Renderer& r = site.renderer;
  r.forget();
  for (std::size_t i = 0; i < vars.size(); ++i) r.set_variable(hole.vars[i], vars[i]);
  Stmt element{.kind = Stmt::Kind::assign, .value = hole.value};
  r.hoist(hole.vars[along], {element});
  r.independent(hole.vars[along], vars[along], count, {}, [&](const std::string& j) {
    site.out.line(to, "[", j, "] = (", memory_type(dtype), ")", r.value(hole.value), ";");
  });
  r.forget();
}

void write_results(const Site& site, const Hole& hole, std::span<const std::string> vars,
                   const std::string& count, const std::string& sums) {
  Renderer& r = site.renderer;
  r.forget();
  for (std::size_t i = 0; i < vars.size(); ++i) r.set_variable(hole.vars[i], vars[i]);
  r.hoist(hole.vars.back(), hole.stores);
  r.independent(hole.vars.back(), vars.back(), count, hole.stores,
                [&](const std::string& j) { r.set_register(0, cat(sums, "[", j, "]")); });
  r.forget();
}

}  // namespace hone::c
