// What subgroups multiply together, where the dialect has functions for it: each thread loads and
// multiplies its part of the pieces that the machine's instruction takes.
#include "codegen/c/expression.h"

namespace hone::c {

// Of pieces of 8 x 8 elements, each thread names a row of one; the four are rows and depth of the
// left operand, or depth and columns of the right one.
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
  // The places of a thread's own elements, less what is the thread's in them.
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

}  // namespace hone::c
