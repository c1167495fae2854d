#include "export/onnx/export.h"

#include <unordered_map>
#include <unordered_set>

#include "base/checked.h"
#include "base/replace_file.h"
#include "export/onnx/graph.h"
#include "import/onnx/file/tensor.h"
#include "type/text.h"

namespace hone {

namespace {

// The version of the format that came with an opset.
std::int64_t ir_version_of(std::int64_t opset) {
  return opset <= 22 ? 10 : opset == 23 ? 11 : opset == 24 ? 12 : 13;
}

constexpr std::size_t data_align = 64;
constexpr std::size_t most_shared = 64;  // bytes of a constant that is looked up

// The constants of all graphs of a model: stored in the outermost one, where bodies can use them.
class Constants final : public onnx::ConstantPool {
 public:
  Constants(std::string data_name, std::int64_t external_above)
      : data_name_(std::move(data_name)), external_above_(external_above) {}

  std::string add(const Array& a) override {
    const auto bytes = a.bytes();
    const std::string_view content(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    std::string name = cat("c", count_);
    if (bytes.size() <= most_shared) {
      const auto [at, is_new] = small_.emplace(cat(a.type(), content), name);
      if (!is_new) return at->second;
    }
    ++count_;
    onnx::Message t;
    for (std::int64_t d : a.dims()) t.number(1, d);
    t.number(2, onnx::data_type_of(a.dtype()));
    t.bytes(8, name);
    if (a.dtype() == DType::text)
      for (std::int64_t i = 0; i < a.count(); ++i) t.bytes(6, text_at(a, i));
    else if (external_above_ > 0 && static_cast<std::int64_t>(bytes.size()) > external_above_)
      add_external(t, a);
    else
      t.bytes(9, content);
    tensors_.message(5, t);
    return name;
  }

  const onnx::Message& tensors() const { return tensors_; }
  const std::vector<std::span<const std::byte>>& parts() const { return parts_; }

 private:
  static onnx::Message pair(std::string_view key, const std::string& value) {
    onnx::Message m;
    m.bytes(1, key);
    m.bytes(2, value);
    return m;
  }

  void add_external(onnx::Message& t, const Array& a) {
    static constexpr std::byte zeros[data_align] = {};
    const std::size_t hole = (data_align - at_ % data_align) % data_align;
    parts_.push_back(std::span(zeros).first(hole));
    parts_.push_back(a.bytes());
    kept_.push_back(a);
    at_ += hole;
    t.message(13, pair("location", data_name_));
    t.message(13, pair("offset", cat(at_)));
    t.message(13, pair("length", cat(a.bytes().size())));
    t.number(14, 1);
    at_ += a.bytes().size();
  }

  std::string data_name_;
  std::int64_t external_above_;
  std::unordered_map<std::string, std::string> small_;  // type and bytes to name
  std::vector<Array> kept_;
  std::vector<std::span<const std::byte>> parts_;
  std::size_t at_ = 0;
  std::int64_t count_ = 0;
  onnx::Message tensors_;
};

// Names that the file can have: not empty, each once, apart from those that are made ("v7", "c7").
std::vector<std::string> unique_names(std::vector<std::string> names, std::string_view fallback) {
  std::unordered_set<std::string> used;
  for (std::size_t i = 0; i < names.size(); ++i) {
    std::string& name = names[i];
    const bool is_ours = name.size() > 1 && (name[0] == 'v' || name[0] == 'c') &&
                         name.find_first_not_of("0123456789", 1) == name.npos;
    if (name.empty() || is_ours) name = cat(fallback, i, name.empty() ? "" : "_", name);
    const std::string base = name;
    for (int k = 2; !used.insert(name).second; ++k) name = cat(base, "_", k);
  }
  return names;
}

}  // namespace

std::filesystem::path external_data_of(const std::filesystem::path& model) {
  return model.parent_path() / fit_file_name(model.filename().string(), ".data");
}

void export_onnx(const Function& given, const std::filesystem::path& to,
                 const OnnxExportOptions& options) {
  // A graph of our own, to which expansions are added.
  const Function f = transform(given, [](NodeId, Copier&, Function&) { return Values(); });
  const std::filesystem::path data = external_data_of(to);
  Constants constants(data.filename().string(), options.external_above);
  onnx::ExportState state{constants};
  std::vector<std::string> names, result_names;
  for (const Function::Param& p : f.params()) names.push_back(p.name);
  for (const Function::Result& r : f.results()) names.push_back(r.name);
  names = unique_names(std::move(names), "value");
  result_names.assign(names.begin() + static_cast<std::ptrdiff_t>(f.params().size()), names.end());
  names.resize(f.params().size());

  onnx::ExportGraph graph(state, f, names);
  graph.add_sizes();
  graph.add_results(result_names);
  if (!state.refused.empty()) {
    std::string lines;
    for (const std::string& line : state.refused) lines += "\n  " + line;
    throw UserError(cat(state.refused.size()), " operations cannot be exported to ONNX:", lines);
  }
  onnx::Message g = graph.nodes();
  g.bytes(2, to.stem().string());
  g.append(constants.tensors());
  for (std::size_t i = 0; i < f.params().size(); ++i)
    g.message(11, onnx::value_info(names[i], f.param(i).type()));
  for (std::size_t i = 0; i < f.results().size(); ++i)
    g.message(12, onnx::value_info(result_names[i], f.result(i).type()));
  onnx::Message model, imported;
  imported.bytes(1, "");
  imported.number(2, state.opset);
  model.number(1, ir_version_of(state.opset));
  model.bytes(2, "hone");
  model.message(7, g);
  model.message(8, imported);
  if (!constants.parts().empty()) write_atomic(data, constants.parts());
  write_atomic(to, model.text());
}

}  // namespace hone
