// Products computed by subgroups, if the dialect has functions for them: each thread loads and
// multiplies its part of the pieces that the machine's instruction takes.
#include <numbers>

#include "codegen/c/expression.h"
#include "kernel/walk.h"
#include "ops/ops.h"

namespace hone::c {

// Each thread gives the address of one row of one of four 8 x 8 pieces. The four pieces span rows
// and depth of the left operand, or depth and columns of the right one.
void Renderer::multiply_halves(const Stmt& s) {
  const Stmt& first = s.body[0];
  for (const Stmt& each : s.body) used_tiles_.insert(each.tile);
  const bool a_lies_along = first.a.stride == Dim(1), b_lies_along = first.k_group > 1;
  const std::int64_t a_pitch = a_lies_along ? first.a.rows[1] / 8 : first.a.stride.number(),
                     b_pitch = b_lies_along ? first.k_group : first.b.stride.number(),
                     pieces = std::ssize(first.a.rows) / 2, columns = std::ssize(s.body);
  const std::string_view type = memory_type(buffer_dtype(first.a.param));
  const std::string load_a = helpers_.use(a_lies_along ? "load_pieces" : "load_pieces_across"),
                    load_b = helpers_.use(b_lies_along ? "load_pieces" : "load_pieces_across"),
                    multiply = helpers_.use(cat("multiply_", buffer_dtype(first.a.param)));
  const std::string lane = fresh("lane"), row = fresh("row"), piece = fresh("piece"),
                    a = fresh("a"), b = fresh("b"), k = fresh("k"), i = fresh("i"), x = fresh("x"),
                    y = fresh("y");
  out_.open();
  out_.line("const int32_t ", lane, " = (int32_t)(", dialect_.thread, " % 32), ", row, " = ", lane,
            " % 8, ", piece, " = ", lane, " / 8;");
  // The address of the row that this thread gives: removes the thread's share from the position of
  // its own elements.
  const auto start = [&](const std::string& name, int param, const Dim& own, std::int64_t of_lane,
                         const std::string& share, const std::string& line, std::int64_t pitch,
                         const std::string& along) {
    out_.line("const ", type, " *const ", name, " = ", buffer(param), " + (", position(own), " - ",
              share, " * ", of_lane, " + (", line, " * 8 + ", row, ") * ", pitch, " + ", along,
              " * 8);");
  };
  const std::string low = cat(piece, " % 2"), high = cat(piece, " / 2");
  start(a, first.a.param, first.a.offset, a_lies_along ? a_pitch : 1, cat(lane, " / 4"),
        cat("(", a_lies_along ? low : high, ")"), a_pitch,
        cat("(", a_lies_along ? high : low, ")"));
  start(b, first.b.param, first.b.offset, 2 * (b_lies_along ? b_pitch : 1), cat(lane, " % 4"),
        cat("(", b_lies_along ? high : low, ")"), b_pitch,
        cat("(", b_lies_along ? low : high, ")"));
  out_.line(dialect_.unroll_products);
  out_.open("for (int32_t ", k, " = 0; ", k, " < ", first.extent.number(), "; ", k, " += 16)");
  out_.line("uint32_t ", x, "[", pieces, "][4], ", y, "[", columns / 2, "][4];");
  const auto load = [&](const std::string& function, const std::string& to, std::int64_t count,
                        const std::string& from, bool lies_along, std::int64_t pitch) {
    out_.line(dialect_.unroll);
    out_.line("for (int32_t ", i, " = 0; ", i, " < ", count, "; ++", i, ") ", function, "(", to,
              "[", i, "], ", from, " + ", i, " * ", 16 * (lies_along ? pitch : 1), " + ", k, " * ",
              lies_along ? 1 : pitch, ");");
  };
  load(load_a, x, pieces, a, a_lies_along, a_pitch);
  load(load_b, y, columns / 2, b, b_lies_along, b_pitch);
  out_.line(dialect_.unroll);
  out_.open("for (int32_t ", i, " = 0; ", i, " < ", pieces, "; ++", i, ")");
  for (std::int64_t c = 0; c < columns; ++c)
    out_.line(multiply, "(t", s.body[static_cast<std::size_t>(c)].tile, " + 4 * ", i, ", ", x, "[",
              i, "], ", y, "[", c / 2, "][", c % 2 * 2, "], ", y, "[", c / 2, "][", c % 2 * 2 + 1,
              "]);");
  out_.close();
  out_.close();
  out_.close();
  forget_registers();
}

// A thread already holds its part of the pieces: two neighbouring elements are one register.
void Renderer::multiply_held_halves(const Stmt& s) {
  const Stmt *load = nullptr, *first = nullptr;
  std::vector<int> tiles;
  for_each_statement(s.body, [&](const Stmt& each) {
    if (each.kind == Stmt::Kind::store) load = &each;
    if (each.kind != Stmt::Kind::tile_multiply) return;
    if (!first) first = &each;
    tiles.push_back(each.tile);
  });
  for (int t : tiles) used_tiles_.insert(t);
  Value held = load->value;
  while (!held.is(ops::load)) held = held.operand(0);
  const DType dtype = buffer_dtype(first->a.param);
  const std::string from = buffer(static_cast<int>(held.attrs().integer("param")));
  const std::int64_t pitch = first->b.stride.number(), pieces = std::ssize(first->a.rows) / 2,
                     columns = std::ssize(tiles), extent = first->extent.number(),
                     held_tiles = extent / 8;
  const std::string load_b = helpers_.use("load_pieces_across"),
                    multiply = helpers_.use(cat("multiply_", dtype)),
                    pack = helpers_.use(cat("pack_", dtype));
  const std::string lane = fresh("lane"), b = fresh("b"), k = fresh("k"), i = fresh("i"),
                    x = fresh("x"), y = fresh("y"), j = fresh("j");
  out_.open();
  out_.line("const int32_t ", lane, " = (int32_t)(", dialect_.thread, " % 32);");
  out_.line("const ", memory_type(dtype), " *const ", b, " = ", buffer(first->b.param), " + (",
            position(first->b.offset), " - ", lane, " % 4 * 2 + (", lane, " / 8 % 2 * 8 + ", lane,
            " % 8) * ", pitch, " + ", lane, " / 16 * 8);");
  out_.line(dialect_.unroll_products);
  out_.open("for (int32_t ", k, " = 0; ", k, " < ", extent / 16, "; ++", k, ")");
  out_.line("uint32_t ", x, "[", pieces, "][4], ", y, "[", columns / 2, "][4];");
  out_.line(dialect_.unroll);
  out_.open("for (int32_t ", i, " = 0; ", i, " < ", pieces, "; ++", i, ")");
  out_.line(dialect_.unroll);
  out_.open("for (int32_t ", j, " = 0; ", j, " < 4; ++", j, ")");
  const std::string place =
      cat("((2 * ", i, " + ", j, " % 2) * ", held_tiles, " + 2 * ", k, " + ", j, " / 2) * 2");
  out_.line(x, "[", i, "][", j, "] = ", pack, "(", from, "[", place, "], ", from, "[", place,
            " + 1]);");
  out_.close();
  out_.close();
  out_.line(dialect_.unroll);
  out_.line("for (int32_t ", i, " = 0; ", i, " < ", columns / 2, "; ++", i, ") ", load_b, "(", y,
            "[", i, "], ", b, " + ", i, " * 16 + ", k, " * ", 16 * pitch, ");");
  out_.line(dialect_.unroll);
  out_.open("for (int32_t ", i, " = 0; ", i, " < ", pieces, "; ++", i, ")");
  for (std::int64_t c = 0; c < columns; ++c)
    out_.line(multiply, "(t", tiles[static_cast<std::size_t>(c)], " + 4 * ", i, ", ", x, "[", i,
              "], ", y, "[", c / 2, "][", c % 2 * 2, "], ", y, "[", c / 2, "][", c % 2 * 2 + 1,
              "]);");
  out_.close();
  out_.close();
  out_.close();
  forget_registers();
}

std::optional<Value> Renderer::power_of_two(const Value& e) const {
  if (!e.is(ops::exp) || e.dtype() != DType::f32 || !e.operand(0).is(ops::mul)) return std::nullopt;
  for (std::size_t i : {0u, 1u}) {
    const Value factor = e.operand(0).operand(i);
    if (factor.is(ops::constant) && static_cast<float>(factor.attrs().get<Array>("value").real(
                                        0)) == std::numbers::ln2_v<float>)
      return e.operand(0).operand(1 - i);
  }
  return std::nullopt;
}

}  // namespace hone::c
