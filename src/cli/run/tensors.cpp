#include "cli/run/tensors.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <set>

#include "base/amount.h"
#include "base/error.h"
#include "base/replace_file.h"
#include "import/import.h"
#include "import/tensor_file.h"

namespace hone::cli {

namespace fs = std::filesystem;

namespace {

// "x f32[1,3], y i64[]"
std::string list(std::span<const PlanParam> params) {
  std::string out;
  for (const PlanParam& p : params) out += cat(out.empty() ? "" : ", ", p.name, " ", p.type);
  return out.empty() ? "none" : out;
}

std::optional<std::size_t> find(std::span<const PlanParam> params, std::string_view name) {
  for (std::size_t i = 0; i < params.size(); ++i)
    if (params[i].name == name) return i;
  return std::nullopt;
}

std::string plain_name(std::string_view name) {
  std::string out;
  for (char c : name)
    out += std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '-' ? c : '_';
  return out.empty() || out[0] == '.' ? "_" + out : out;
}

std::string file_name(std::string_view name, std::string_view ending) {
  return fit_file_name(plain_name(name), ending);
}

}  // namespace

std::vector<fs::path> data_sets(const fs::path& root) {
  std::vector<fs::path> out;
  for (int i = 0; fs::is_directory(root / cat("test_data_set_", i)); ++i)
    out.push_back(root / cat("test_data_set_", i));
  return out;
}

std::vector<Array> read_set(const fs::path& set, std::string_view kind) {
  std::vector<Array> out;
  for (int i = 0;; ++i) {
    const fs::path pb = set / cat(kind, "_", i, ".pb"), npy = set / cat(kind, "_", i, ".npy");
    if (fs::exists(pb))
      std::ranges::move(read_tensors_pb(pb), std::back_inserter(out));
    else if (fs::exists(npy))
      out.push_back(read_npy(npy));
    else
      return out;
  }
}

std::vector<Array> read_named(const fs::path& set, std::span<const PlanParam> params) {
  std::vector<Array> out;
  for (const PlanParam& p : params)
    for (const char* ending : {".npy", ".pb"})
      if (const fs::path file = set / file_name(p.name, ending); fs::exists(file)) {
        out.push_back(read_tensor_file(file, p.type));
        break;
      }
  return out.size() == params.size() ? out : std::vector<Array>();
}

namespace {

bool fits(const Array& a, const Type& t) {
  if (a.dtype() != t.dtype || a.rank() != t.rank()) return false;
  for (std::size_t i = 0; i < a.dims().size(); ++i)
    if (t.shape.dims[i].is_number() && t.shape.dims[i].number() != a.dims()[i]) return false;
  return true;
}

void check_input(const Array& a, const PlanParam& p, std::string_view where) {
  if (fits(a, p.type)) return;
  const bool is_dtype = a.dtype() != p.type.dtype;
  throw UserError(where, ": is ", a.type(), ", expected ", p.type, " for input '", p.name,
                  is_dtype ? "'; convert its elements" : "'; give it in that shape");
}

// Which input a specification names, and the file. Without a name: no input.
std::pair<std::optional<std::size_t>, std::string> split(const std::string& spec,
                                                         std::span<const PlanParam> params) {
  for (const char sign : {'=', ':'})
    for (std::size_t at = spec.find(sign); at != spec.npos; at = spec.find(sign, at + 1))
      if (auto i = find(params, std::string_view(spec).substr(0, at)))
        return {i, spec.substr(at + 1)};
  return {std::nullopt, spec};
}

}  // namespace

void check_inputs(std::span<const Array> arrays, std::span<const PlanParam> params,
                  std::string_view where) {
  if (arrays.size() != params.size())
    throw UserError(where, ": contains ", amount(arrays.size(), "input", "inputs"), ", expected ",
                    params.size(), ": ", list(params));
  for (std::size_t i = 0; i < arrays.size(); ++i)
    check_input(arrays[i], params[i], cat(where, ", input ", i));
}

std::vector<Array> read_inputs(const std::vector<std::string>& specs,
                               std::span<const PlanParam> params) {
  std::vector<std::optional<Array>> found(params.size());
  const auto take = [&](std::size_t i, Array a, const std::string& spec, const std::string& where) {
    if (found[i])
      throw UserError("--input ", spec, ": input '", params[i].name,
                      "' is given twice; give it once");
    check_input(a, params[i], where);
    found[i] = std::move(a);
  };
  for (const std::string& spec : specs) {
    auto [i, file] = split(spec, params);
    if (file.empty())
      throw UserError("--input ", spec.empty() ? "''" : spec,
                      ": names no file, expected NAME=FILE or FILE");
    if (!i && file.ends_with(".npz")) {
      for (const NpzEntry& e : read_npz(file)) {
        const std::optional<std::size_t> at = find(params, e.name);
        if (!at)
          throw UserError("--input ", spec, ": there is no input '", e.name, "'; the inputs are ",
                          list(params));
        take(*at, as_type(e.data, params[*at].type), spec, cat(file, ", ", e.name));
      }
      continue;
    }
    const std::size_t equals = spec.find('=');
    if (!i && equals != spec.npos && !fs::exists(file))
      throw UserError("--input ", spec, ": there is no input '", spec.substr(0, equals),
                      "'; the inputs are ", list(params));
    if (!i) i = std::ranges::find_if(found, [](const auto& a) { return !a; }) - found.begin();
    if (*i >= params.size())
      throw UserError("--input ", spec, ": more inputs are given than there are; the inputs are ",
                      list(params));
    take(*i, read_tensor_file(file, params[*i].type), spec, file);
  }
  std::vector<Array> out;
  for (std::size_t i = 0; i < params.size(); ++i) {
    if (!found[i])
      throw UserError("input '", params[i].name, "' ", params[i].type,
                      " is missing; give it with --input ", params[i].name,
                      "=FILE (.npy, .npz, .pb or raw bytes)");
    out.push_back(std::move(*found[i]));
  }
  return out;
}

void make_output_directory(const fs::path& directory) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error || !fs::is_directory(directory))
    throw UserError("--output-dir ", directory.string(), ": cannot be created: ",
                    error ? error.message() : "there is a file of that name",
                    "; give another directory");
}

std::vector<fs::path> result_files(const fs::path& directory, std::span<const PlanParam> results) {
  std::vector<fs::path> out;
  std::set<std::string> taken;
  for (const PlanParam& r : results) {
    std::string ending = ".npy";
    while (!taken.insert(file_name(r.name, ending)).second) ending.insert(0, "_");
    out.push_back(directory / file_name(r.name, ending));
    if (is_mapped(out.back()))
      throw UserError("--output-dir ", directory.string(), ": the result '", r.name,
                      "' would overwrite ", out.back().string(),
                      ", which is an input; give another directory");
  }
  return out;
}

std::vector<Written> write_results(std::span<const fs::path> files,
                                   std::span<const PlanParam> results,
                                   std::span<const Array> arrays) {
  std::vector<Written> out;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    if (results[i].name.ends_with(dump_flag)) continue;  // belongs to the value before it
    const bool has_flag =
        i + 1 < arrays.size() && results[i + 1].name == cat(results[i].name, dump_flag);
    if (has_flag && arrays[i + 1].integer(0) == 0) {
      out.push_back({results[i].name, arrays[i].type()});
      continue;
    }
    out.push_back({results[i].name, arrays[i].type(), files[i]});
    write_npy(out.back().file, arrays[i]);
  }
  return out;
}

}  // namespace hone::cli
