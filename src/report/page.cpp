#include "report/page.h"

#include <span>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "report/report.h"

namespace hone {

namespace {

// Escapes JSON so that strings of a model cannot end the script element or start a comment in it.
std::string inside_script(const std::string& json) {
  std::string out;
  out.reserve(json.size());
  for (char c : json) {
    if (c == '<')
      out += "\\u003c";
    else
      out += c;
  }
  return out;
}

std::string inside_html(std::string_view text) {
  std::string out;
  for (char c : text) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

// The template with each "@NAME@" replaced. Inserted text is not scanned again.
std::string filled(std::string_view text,
                   std::span<const std::pair<std::string_view, std::string>> parts) {
  std::string out;
  for (const auto& [name, with] : parts) {
    const std::string mark = cat("@", name, "@");
    const std::size_t at = text.find(mark);
    HONE_ASSERT(at != std::string_view::npos, "the page has no ", mark);
    out.append(text.substr(0, at)).append(with);
    text.remove_prefix(at + mark.size());
  }
  return out.append(text);
}

}  // namespace

std::string report_page(const Json& report) {
  const std::pair<std::string_view, std::string> parts[] = {
      {"TITLE", inside_html(report.at("model").at("name").text_value())},
      {"STYLE", std::string(page::style)},
      {"DATA", inside_script(report.text())},
      {"SCRIPT", std::string(page::script)},
  };
  return filled(page::html, parts);
}

}  // namespace hone
