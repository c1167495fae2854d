// The parts of the page, compiled in from the files in report/page/.
#pragma once

#include <string_view>

namespace hone::page {

extern const std::string_view html, style, script;

}  // namespace hone::page
