// Tiles of a subgroup as opaque matrices, if the dialect has them: no thread knows which elements
// it holds. Shared memory is then one array of 16-byte words, and a thread also holds operands on
// their way there as such words.
#include <algorithm>

#include "codegen/c/expression.h"
#include "kernel/groups/tensor_writer.h"
#include "kernel/positions.h"
#include "kernel/walk.h"

namespace hone::c {

namespace {

constexpr std::int64_t word_bytes = 16, side = 16, lines_of_thread = side / 8;

std::string matrix_name(std::int64_t row, int tile) { return cat("sums_", row, "_", tile / 2); }

// Calls `found` for each store and the number of its lanes; 1 if it has a condition.
void for_each_store(const Block& block, std::int64_t width,
                    const std::function<void(int param, std::int64_t width)>& found) {
  for (const Stmt& s : block) {
    const bool is_lanes = is_loop(s) && s.loop == LoopKind::lanes && s.extent.is_number();
    if (s.kind == Stmt::Kind::store) found(s.param, s.condition ? 1 : width);
    for_each_store(s.body, is_lanes ? s.extent.number() : 1, found);
    for_each_store(s.otherwise, 1, found);
  }
}

}  // namespace

bool has_matrices(const Kernel& kernel) {
  bool out = false;
  for_each_statement(kernel.body, [&](const Stmt& s) {
    out = out || (s.kind == Stmt::Kind::intrinsic && s.name == hone::multiply_matrices);
  });
  return out;
}

void Renderer::find_matrices() {
  uses_matrices_ = dialect_.matrices && has_matrices(kernel_);
  if (!uses_matrices_) return;
  HONE_ASSERT(dialect_.subgroup == 32, kernel_.name, ": matrices without subgroups of 32");
  std::unordered_set<int> other_stores;  // memory that is not stored in words
  for_each_store(kernel_.body, 1, [&](int param, std::int64_t width) {
    if (width != word_elements(param)) other_stores.insert(param);
  });
  for (std::size_t i = 0; i < kernel_.memory.size(); ++i) {
    const KernelMemory& m = kernel_.memory[i];
    const int param = static_cast<int>(kernel_.params.size() + i);
    if (m.scope == MemoryScope::group || (is_variable(m) && !other_stores.contains(param)))
      in_words_.insert(param);
  }
}

std::int64_t Renderer::word_elements(int param) const {
  return word_bytes / byte_size(buffer_dtype(param));
}

std::string Renderer::words_name(int param) {
  return is_shared(param) ? "hone_shared" : buffer(param);
}

// The index of the word that begins with the element.
std::string Renderer::word_number(int param, const Dim& at) {
  const auto memory = static_cast<std::size_t>(param) - kernel_.params.size();
  const Dim first = is_shared(param) ? kernel_.memory[memory].offset.number() / word_bytes : 0;
  buffer(param);
  return position(first + floor_div(at, word_elements(param)));
}

std::string Renderer::word_at(int param, const Dim& at) {
  return in_array(words_name(param), word_number(param, at));
}

std::string Renderer::element_in_words(int param, const std::string& at) {
  const auto memory = static_cast<std::size_t>(param) - kernel_.params.size();
  const std::int64_t first =
      is_shared(param) ? kernel_.memory[memory].offset.number() / byte_size(buffer_dtype(param))
                       : 0;
  HONE_ASSERT(buffer_dtype(param) == DType::f32, kernel_.name, ": an element of a word of p",
              param);
  return filled(dialect_.matrices->element,
                {{"$A", words_name(param)}, {"$I", cat("(", at, " + ", first, ")")}});
}

// Converts words to a vector of `width` elements, and back.
std::string Renderer::unpacked(int param, std::int64_t width, const std::string& name,
                               const Dim& first) {
  std::string words;
  for (std::int64_t i = 0; i < width; i += word_elements(param))
    words += cat(words.empty() ? "" : ", ", word_at(param, first + Dim(i)));
  return filled(dialect_.matrices->unpack, {{"$T", std::string(memory_type(buffer_dtype(param)))},
                                            {"$N", cat(width)},
                                            {"$V", name},
                                            {"$W", words}});
}

std::string Renderer::packed(int param, std::int64_t width, const std::string& name,
                             const Dim& first) {
  HONE_ASSERT(width == word_elements(param), kernel_.name, ": a vector of p", param,
              " does not fill one word");
  return filled(dialect_.matrices->pack, {{"$T", std::string(memory_type(buffer_dtype(param)))},
                                          {"$N", cat(width)},
                                          {"$V", name},
                                          {"$W", word_at(param, first)}});
}

// Writes a lanes loop that copies one whole word; false for others.
bool Renderer::moves_word(const Stmt& s) {
  if (!uses_matrices_ || s.body.size() != 1) return false;
  const Stmt& store = s.body[0];
  if (store.kind != Stmt::Kind::store || store.condition || !in_words_.contains(store.param) ||
      !store.value.is(ops::load) || store.value.dtype() != buffer_dtype(store.param))
    return false;
  const int from = static_cast<int>(store.value.attrs().integer("param"));
  const auto to_first = vector_start(s, store.param, store.offset),
             from_first = vector_start(s, from, store.value.attrs().dims("offset").at(0));
  const std::int64_t width = s.extent.number();
  const bool is_conditional = store.value.operand_count() > 0;
  if (!to_first || !from_first || width != word_elements(store.param) ||
      (is_conditional && dependences(store.value.operand(0)).loops.contains(s.var)))
    return false;
  const std::string to = word_at(store.param, *to_first);
  if (!in_words_.contains(from)) use_vector(from, width);
  const std::string word = in_words_.contains(from) ? word_at(from, *from_first)
                                                    : vector_text(dialect_.matrices->read, from,
                                                                  width, "", position(*from_first));
  if (is_conditional) {
    const std::string condition = value(store.value.operand(0));
    out_.line(to, " = ", dialect_.matrices->zero, ";");
    out_.line("if (", condition, ") ", to, " = ", word, ";");
  } else {
    out_.line(to, " = ", word, ";");
  }
  forget_memory();
  return true;
}

void Renderer::fill_matrices(const Stmt& s) {
  used_tiles_.insert(s.tile);
  if (s.tile % 2 != 0) return;  // handled with the previous tile
  const std::string x = value(s.value);
  for (std::int64_t i = 0; i < kernel_.tiles[static_cast<std::size_t>(s.tile)].rows; i += 2)
    out_.line(filled(dialect_.matrices->fill, {{"$V", matrix_name(i / 2, s.tile)}, {"$X", x}}));
}

// Writes with the position of the subgroup's first thread: the corner of the subgroup's part.
void Renderer::at_corner(const std::function<void()>& write) {
  std::string& thread = variables_.at(group_thread_);
  const std::string own = std::exchange(thread, std::string(dialect_.matrices->first_thread));
  write();
  variables_.at(group_thread_) = own;
}

std::string Renderer::held_matrix(int param, std::int64_t row, std::int64_t column) {
  const std::string name = cat("held", param, "_", row / side, "_", column / side);
  held_matrices_.insert(name);
  return name;
}

void Renderer::hold_matrices(const Stmt& s) {
  const Stmt &rows = s.body[0], &columns = rows.body[0], &store = columns.body[0];
  const Replacement none[] = {{symbol_of(rows), 0}, {symbol_of(columns), 0}};
  const int from = static_cast<int>(store.value.attrs().integer("param"));
  const Dim at = store.value.attrs().dims("offset").at(0), corner = replace(at, none);
  const std::int64_t pitch = stride_of(at, symbol_of(rows))->number() / 8,
                     first = replace(store.offset, none).number();
  at_corner([&] {
    for (std::int64_t i = 0; i < rows.extent.number(); i += lines_of_thread)
      for (std::int64_t k = 0; k < columns.extent.number(); k += side)
        out_.line(filled(dialect_.matrices->load,
                         {{"$V", held_matrix(store.param, 8 * i, first + k)},
                          {"$A", words_name(from)},
                          {"$I", word_number(from, corner + Dim(8 * i * pitch + k))},
                          {"$P", cat(pitch / word_elements(from))},
                          {"$C", "false"}}));
  });
}

void Renderer::multiply_matrices(const Stmt& s) {
  const MatrixWords& words = *dialect_.matrices;
  const Stmt& first = s.body[0];
  const auto a_memory = static_cast<std::size_t>(first.a.param) - kernel_.params.size();
  const bool a_is_held = kernel_.memory[a_memory].scope == MemoryScope::thread,
             a_lies_along = first.a.stride == Dim(1), b_lies_along = first.k_group > 1;
  const std::int64_t a_pitch = a_lies_along ? first.a.rows[1] / 8 : first.a.stride.number(),
                     b_pitch = b_lies_along ? first.k_group : first.b.stride.number();
  const auto corner = [&](int param, const Dim& at) {
    const std::string name = fresh("corner");
    out_.line("const ", index_type(), " ", name, " = ", word_number(param, at), ";");
    return name;
  };
  // `behind` elements after a corner.
  const auto load = [&](std::string_view type, const std::string& name, int param,
                        const std::string& from, std::int64_t behind, std::int64_t pitch,
                        bool is_by_columns) {
    out_.line(type, " ", name, ";");
    out_.line(filled(words.load, {{"$V", name},
                                  {"$A", words_name(param)},
                                  {"$I", cat(from, " + ", behind / word_elements(param))},
                                  {"$P", cat(pitch / word_elements(param))},
                                  {"$C", is_by_columns ? "true" : "false"}}));
  };
  out_.open();
  at_corner([&] {
    const std::string a_corner = a_is_held ? "" : corner(first.a.param, first.a.offset),
                      b_corner = corner(first.b.param, first.b.offset);
    for (std::int64_t k = 0; k < first.extent.number(); k += side) {
      std::vector<std::string> left;
      for (std::size_t i = 0; i < first.a.rows.size(); i += lines_of_thread) {
        if (a_is_held) {
          left.push_back(held_matrix(first.a.param, static_cast<std::int64_t>(8 * i), k));
          continue;
        }
        left.push_back(fresh("left"));
        load(words.left, left.back(), first.a.param, a_corner,
             first.a.rows[i] + k * (a_lies_along ? 1 : a_pitch), a_pitch, !a_lies_along);
      }
      for (std::size_t j = 0; j < s.body.size(); j += 2) {
        const std::string right = fresh("right");
        const Stmt& column = s.body[j];
        used_tiles_.insert(column.tile);
        load(words.right, right, column.b.param, b_corner,
             (column.b.offset - first.b.offset).number() + k * (b_lies_along ? 1 : b_pitch),
             b_pitch, b_lies_along);
        for (std::size_t i = 0; i < left.size(); ++i)
          out_.line(filled(words.multiply,
                           {{"$S", matrix_name(static_cast<std::int64_t>(i), column.tile)},
                            {"$L", left[i]},
                            {"$R", right}}));
      }
    }
  });
  out_.close();
  forget_registers();
}

void Renderer::store_matrices(const Stmt& s) {
  at_corner([&] {
    for (std::size_t j = 0; j < s.body.size(); j += 2) {
      const Stmt &rows = s.body[j], &columns = rows.body[0], &store = columns.body[0];
      const Replacement none[] = {{symbol_of(rows), 0}, {symbol_of(columns), 0}};
      const Dim corner = replace(store.offset, none);
      const std::int64_t pitch = stride_of(store.offset, symbol_of(rows))->number() / 8,
                         line = replace(store.value.attrs().dims("offset").at(0), none).number();
      const int tile = static_cast<int>(store.value.attrs().integer("index"));
      for (std::int64_t i = 0; i < rows.extent.number(); i += lines_of_thread)
        out_.line(filled(dialect_.matrices->store,
                         {{"$V", matrix_name((line + i) / lines_of_thread, tile)},
                          {"$A", words_name(store.param)},
                          {"$I", word_number(store.param, corner + Dim(8 * i * pitch))},
                          {"$P", cat(pitch / word_elements(store.param))}}));
    }
  });
  forget_memory();
}

void Renderer::load_matrices(const Stmt& s) {
  at_corner([&] {
    for (std::size_t j = 0; j < s.body.size(); j += 2) {
      const Stmt& tile = s.body[j];
      used_tiles_.insert(tile.tile);
      const std::int64_t pitch = tile.a.rows[1] / 8;
      for (std::size_t i = 0; i < tile.a.rows.size(); i += lines_of_thread)
        out_.line(
            filled(dialect_.matrices->load,
                   {{"$V", matrix_name(static_cast<std::int64_t>(i) / lines_of_thread, tile.tile)},
                    {"$A", words_name(tile.a.param)},
                    {"$I", word_number(tile.a.param, tile.a.offset + Dim(tile.a.rows[i]))},
                    {"$P", cat(pitch / word_elements(tile.a.param))},
                    {"$C", "false"}}));
    }
  });
}

void Renderer::declare_matrices(Text& out) {
  for (const int tile : used_tiles_)
    for (std::int64_t i = 0;
         tile % 2 == 0 && i < kernel_.tiles[static_cast<std::size_t>(tile)].rows; i += 2)
      out.line(dialect_.matrices->sums, " ", matrix_name(i / 2, tile), ";");
  for (const std::string& name : held_matrices_) out.line(dialect_.matrices->left, " ", name, ";");
  Dim bytes = 0;
  for (const KernelMemory& m : kernel_.memory)
    if (m.scope == MemoryScope::group)
      bytes = max(bytes, m.offset + m.elements * Dim(byte_size(m.dtype)));
  shared_.push_back(
      cat(dialect_.matrices->word, " hone_shared[", ceil_div(bytes, word_bytes).number(), "]"));
}

}  // namespace hone::c
