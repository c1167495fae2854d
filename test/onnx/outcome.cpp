#include "test/onnx/outcome.h"

#include <cctype>

#include "base/error.h"

namespace hone::conformance {

Json to_json(const Outcome& o) {
  return Json::Object{{"verdict", name_of(o.verdict)},
                      {"reason", o.reason},
                      {"import_ms", o.import_ms},
                      {"compile_ms", o.compile_ms},
                      {"run_ms", o.run_ms},
                      {"on_host", Json::Array(o.on_host.begin(), o.on_host.end())}};
}

Outcome outcome_from(const Json& j) {
  Outcome out;
  const std::string& name = j.at("verdict").text_value();
  for (std::size_t i = 0; i < std::size(verdict_names); ++i)
    if (verdict_names[i] == name) out.verdict = static_cast<Verdict>(i);
  out.reason = j.at("reason").text_value();
  for (const Json& name : j.at("on_host").array()) out.on_host.push_back(name.text_value());
  out.import_ms = j.at("import_ms").real();
  out.compile_ms = j.at("compile_ms").real();
  out.run_ms = j.at("run_ms").real();
  return out;
}

namespace {

// "'...'" becomes "'_'", a number becomes "N".
std::string generalised(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    const bool in_word = i > 0 && std::isalpha(static_cast<unsigned char>(text[i - 1]));
    if (c == '\'') {
      const std::size_t end = text.find('\'', i + 1);
      if (end == text.npos) return out + std::string(text.substr(i));
      out += "'_'";
      i = end;
    } else if (std::isdigit(c) && !in_word) {
      if (out.empty() || out.back() != 'N') out += 'N';
    } else {
      out += static_cast<char>(c);
    }
  }
  return out;
}

std::string_view after(std::string_view text, std::string_view mark) {
  const std::size_t at = text.find(mark);
  return at == text.npos ? text : text.substr(at + mark.size());
}

}  // namespace

std::string kind_of_reason(const Outcome& o) {
  std::string_view text = o.reason;
  // For a list only the first line counts.
  text = after(text, "not supported:\n  ");
  text = text.substr(0, text.find('\n'));
  if (const std::size_t of = text.find(" of ai.onnx"); of != text.npos) {
    const std::size_t colon = text.rfind(": ", of);
    if (colon != text.npos)
      return cat("operator ", text.substr(colon + 2, of - colon - 2),
                 text.find("another opset") == text.npos ? "" : " (of this opset)");
  }
  for (std::string_view file : {".onnx: ", ".pb: "}) text = after(text, file);
  if (text.starts_with("node ")) text = after(text, "): ");
  return generalised(text.substr(0, 110));
}

}  // namespace hone::conformance
