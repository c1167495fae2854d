#include "codegen/c/program_files.h"

#include <algorithm>

#include "codegen/c/text.h"
#include "codegen/c/weights.h"

namespace hone::c {

namespace {

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
  return text;
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c >= ' ' && c <= '~' ? c : '?';
  }
  return out + "\"";
}

// Replaces $NAME, $name and the like in a text.
std::string filled(const ProgramFacts& f, std::string text) {
  const std::pair<std::string, std::string> words[] = {
      {"$NAME", upper(f.name)},
      {"$name", f.name},
      {"$include", cat("#include \"", f.name, ".h\"\n")}};
  for (const auto& [from, to] : words)
    for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at))
      text.replace(at, from.size(), to), at += to.size();
  return text;
}

std::string run_parameters(const ProgramFacts& f) {
  std::string out = cat("const ", f.name, "_model *model");
  for (const ProgramValue& v : f.inputs)
    out += cat(", const ", memory_type(v.type.dtype), " *", v.name);
  for (const ProgramValue& v : f.outputs) out += cat(", ", memory_type(v.type.dtype), " *", v.name);
  return out + ", void *arena";
}

std::string describe(const ProgramValue& v) {
  std::string dtype;
  if (v.type.dtype == DType::f16) dtype = ", each the bits of an IEEE 754 half";
  if (v.type.dtype == DType::bf16) dtype = ", each the upper half of a float";
  if (v.type.dtype == DType::b1) dtype = ", each 0 or 1";
  return in_comment(cat(v.name, ": ", v.type, " '", v.original, "', row-major", dtype));
}

}  // namespace

std::string header_text(const ProgramFacts& f) {
  Text out;
  out.paste(filled(f, R"(/* $name: a model as C, written by hone aot. Needs libc and libm.

   Nothing is allocated, and nothing global changes: a model may run in several threads at once, each
   with an arena of its own. Memory for weights and arena is the caller's; it starts at a multiple of
   8 bytes (of 64 is faster). Inputs, outputs and arena do not overlap. */
#ifndef HONE_AOT_$NAME_H
#define HONE_AOT_$NAME_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

)"));
  out.line("#define ", upper(f.name), "_WEIGHTS_BYTES ((size_t)", f.weights_bytes, ")");
  out.line("#define ", upper(f.name), "_ARENA_BYTES ((size_t)",
           std::max<std::int64_t>(f.arena_bytes, 1), ")");
  auto sizes = [&](const char* kind, const std::vector<ProgramValue>& list) {
    out.line("#define ", upper(f.name), "_", kind, "S ", list.size());
    for (std::size_t i = 0; i < list.size(); ++i)
      out.line("#define ", upper(f.name), "_", kind, "_", i, "_BYTES ((size_t)", list[i].bytes,
               ") /* ", in_comment(list[i].name), " */");
  };
  sizes("INPUT", f.inputs);
  sizes("OUTPUT", f.outputs);
  out.paste(filled(f, R"(
enum {
  $NAME_OK = 0,
  $NAME_WRONG_WEIGHTS = 1, /* not the weights of this program, or damaged */
  $NAME_CANNOT_READ = 2    /* the file of weights */
};

/* Weights that were looked at. */
typedef struct $name_model {
  const unsigned char *weights;
} $name_model;

/* Takes the content of $name.weights, which must stay where it is: $NAME_WEIGHTS_BYTES bytes. Checks
   size and checksum. */
int $name_init($name_model *model, const void *weights, size_t bytes);

/* The same from a file, which is read to `memory`: $NAME_WEIGHTS_BYTES bytes. */
int $name_read($name_model *model, const char *path, void *memory);

)"));
  if (f.embeds_weights)
    out.paste(filled(f,
                     "/* The weights, for $name_init. */\n"
                     "extern const unsigned char $name_weights[];\n\n"));
  out.line("/* Runs the model once. `arena`: ", upper(f.name),
           "_ARENA_BYTES bytes, of any content.");
  out.line("   Inputs:");
  for (const ProgramValue& v : f.inputs) out.line("     ", describe(v));
  out.line("   Outputs:");
  for (const ProgramValue& v : f.outputs) out.line("     ", describe(v));
  out.line("   Gives 0, or a status that ", f.name, "_message explains. */");
  out.line("int ", f.name, "_run(", run_parameters(f), ");");
  out.paste(filled(f, R"(
const char *$name_message(int status);

#ifdef __cplusplus
}
#endif

#endif
)"));
  return out.str();
}

std::string source_text(const ProgramFacts& f, const std::string& kernels,
                        const std::string& steps) {
  Text out;
  out.paste(kernels);
  out.line("#include \"", f.name, ".h\"");
  out.paste(filled(f, R"(
#include <stdio.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#error "the weights are little-endian"
#endif

)"));
  out.paste(checksum_text());
  out.paste(filled(f, R"(
int $name_init($name_model *model, const void *weights, size_t bytes) {
  const unsigned char *start = (const unsigned char *)weights;
  uint64_t payload;
  model->weights = NULL;
  if (bytes != $NAME_WEIGHTS_BYTES || memcmp(start, "HONEAOT1", 8) != 0) return $NAME_WRONG_WEIGHTS;
  memcpy(&payload, start + 8, sizeof payload);
  if (payload != $NAME_WEIGHTS_BYTES - 64) return $NAME_WRONG_WEIGHTS;
)"));
  out.line("  if (hone_checksum(start + 64, bytes - 64) != UINT64_C(", f.checksum, ")) return ",
           upper(f.name), "_WRONG_WEIGHTS;");
  out.paste(filled(f, R"(  model->weights = start;
  return $NAME_OK;
}

int $name_read($name_model *model, const char *path, void *memory) {
  FILE *file = fopen(path, "rb");
  size_t bytes;
  int more;
  model->weights = NULL;
  if (file == NULL) return $NAME_CANNOT_READ;
  bytes = fread(memory, 1, $NAME_WEIGHTS_BYTES, file);
  more = bytes == $NAME_WEIGHTS_BYTES ? fgetc(file) : EOF;
  if (fclose(file) != 0) return $NAME_CANNOT_READ;
  if (more != EOF) return $NAME_WRONG_WEIGHTS;
  return $name_init(model, memory, bytes);
}

const char *$name_message(int status) {
  switch (status) {
    case $NAME_OK:
      return "done";
    case $NAME_WRONG_WEIGHTS:
      return "these are not the weights of this program, or they are damaged";
    case $NAME_CANNOT_READ:
      return "the file of weights cannot be read";
)"));
  for (std::size_t i = 0; i < f.refusals.size(); ++i) {
    out.line("    case ", first_refusal + static_cast<int>(i), ":");
    out.line("      return ", quoted(f.refusals[i]), ";");
  }
  out.line("    default:");
  out.line("      return \"not a status of this program\";");
  out.line("  }");
  out.line("}");
  out.line("");
  out.open("int ", f.name, "_run(", run_parameters(f), ")");
  out.line("unsigned char *const memory = (unsigned char *)arena;");
  out.line("(void)memory;");
  out.line("if (model->weights == NULL) return ", upper(f.name), "_WRONG_WEIGHTS;");
  out.paste(steps);
  out.line("return ", upper(f.name), "_OK;");
  out.close();
  return out.str();
}

std::string example_text(const ProgramFacts& f) {
  Text out;
  out.paste(filled(
      f,
      R"(/* Runs $name once: reads its inputs as raw bytes from files, prints the first numbers of its
   outputs, and writes them as raw bytes to files where these are given. */
#include <stdio.h>
#include <stdlib.h>

$include
static void stop(const char *what, const char *why) {
  fprintf(stderr, "%s: %s\n", what, why);
  exit(1);
}

/* At a multiple of 64 bytes. */
static void *memory(size_t bytes) {
  void *p = aligned_alloc(64, (bytes / 64 + 1) * 64);
  if (p == NULL) stop("memory", "there is not enough");
  return p;
}

static void *read_file(const char *path, size_t bytes) {
  void *data = memory(bytes);
  FILE *file = fopen(path, "rb");
  if (file == NULL) stop(path, "cannot be opened");
  if (fread(data, 1, bytes, file) != bytes || fgetc(file) != EOF) {
    fprintf(stderr, "%s: expected %lu bytes\n", path, (unsigned long)bytes);
    exit(1);
  }
  fclose(file);
  return data;
}

static void write_file(const char *path, const void *data, size_t bytes) {
  FILE *file = fopen(path, "wb");
  if (file == NULL || fwrite(data, 1, bytes, file) != bytes || fclose(file) != 0)
    stop(path, "cannot be written");
}

)"));
  out.open("int main(int argc, char **argv)");
  out.line(f.name, "_model model;");
  out.line("void *arena = memory(", upper(f.name), "_ARENA_BYTES);");
  out.line("int status, at = 1;");
  const std::string weights = f.embeds_weights ? "" : " WEIGHTS";
  std::string usage = "usage: %s" + weights;
  for (const ProgramValue& v : f.inputs) usage += " " + upper(v.name);
  for (const ProgramValue& v : f.outputs) usage += " [" + upper(v.name) + "]";
  const std::size_t least = f.inputs.size() + (f.embeds_weights ? 1 : 2);
  out.open("if (argc < ", least, ")");
  out.line("fprintf(stderr, \"", usage, "\\n\", argv[0]);");
  out.line("return 2;");
  out.close();
  if (f.embeds_weights)
    out.line("status = ", f.name, "_init(&model, ", f.name, "_weights, ", upper(f.name),
             "_WEIGHTS_BYTES);");
  else
    out.line("status = ", f.name, "_read(&model, argv[at++], memory(", upper(f.name),
             "_WEIGHTS_BYTES));");
  out.line("if (status != 0) stop(\"weights\", ", f.name, "_message(status));");
  out.open();
  std::string arguments;
  for (std::size_t i = 0; i < f.inputs.size(); ++i) {
    const std::string_view type = memory_type(f.inputs[i].type.dtype);
    out.line("const ", type, " *in", i, " = (const ", type, " *)read_file(argv[at++], ",
             upper(f.name), "_INPUT_", i, "_BYTES);");
    arguments += cat(", in", i);
  }
  for (std::size_t i = 0; i < f.outputs.size(); ++i) {
    const std::string_view type = memory_type(f.outputs[i].type.dtype);
    out.line(type, " *out", i, " = (", type, " *)memory(", upper(f.name), "_OUTPUT_", i,
             "_BYTES);");
    arguments += cat(", out", i);
  }
  out.line("status = ", f.name, "_run(&model", arguments, ", arena);");
  out.line("if (status != 0) stop(\"run\", ", f.name, "_message(status));");
  for (std::size_t i = 0; i < f.outputs.size(); ++i) {
    const ProgramValue& v = f.outputs[i];
    const std::int64_t count = v.bytes / byte_size(v.type.dtype);
    out.line("printf(\"%s:\", ", quoted(v.name), ");");
    out.line("for (int i = 0; i < ", std::min<std::int64_t>(count, 8), "; ++i) printf(\" %g\", ",
             "(double)out", i, "[i]);");
    out.line("printf(\"", count > 8 ? " ..." : "", "\\n\");");
    out.line("if (at < argc) write_file(argv[at++], out", i, ", ", upper(f.name), "_OUTPUT_", i,
             "_BYTES);");
  }
  out.close();
  out.line("return 0;");
  out.close();
  return out.str();
}

std::string cmake_text(const ProgramFacts& f) {
  return filled(f, cat(R"(cmake_minimum_required(VERSION 3.16)
project($name C)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)  # -O3, which the kernels are written for
endif()
option($NAME_NATIVE "make code for this machine's processor" ON)

add_library($name STATIC $name.c)",
                       f.embeds_weights ? " $name_weights.c" : "", R"()
set_target_properties($name PROPERTIES C_STANDARD 11 POSITION_INDEPENDENT_CODE ON)
target_include_directories($name PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
if(UNIX)
  target_link_libraries($name PUBLIC m)
endif()
include(CheckCCompilerFlag)
check_c_compiler_flag(-ffp-contract=off $NAME_HAS_CONTRACT)
if($NAME_HAS_CONTRACT)
  target_compile_options($name PRIVATE -ffp-contract=off)  # the source says what is fused
endif()
if($NAME_NATIVE)
  check_c_compiler_flag(-march=native $NAME_HAS_NATIVE)
  if($NAME_HAS_NATIVE)
    target_compile_options($name PRIVATE -march=native)
  endif()
endif()

add_executable($name_example example.c)
set_target_properties($name_example PROPERTIES C_STANDARD 11)
target_link_libraries($name_example PRIVATE $name)
)"));
}

}  // namespace hone::c
