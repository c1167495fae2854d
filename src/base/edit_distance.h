// How far two names are apart, for messages that name the nearest one.
#pragma once

#include <cstddef>
#include <string_view>

namespace hone {

// Edits that turn one name into the other: a character added, removed or changed, or two neighbours
// swapped. Case is ignored.
std::size_t edit_distance(std::string_view a, std::string_view b);

}  // namespace hone
