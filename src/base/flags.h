// The one table of environment flags. `hone flags` prints it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hone {

struct Flag {
  std::string_view name;  // HONE_...
  std::string_view meaning;
  std::string_view fallback;  // value when unset
  long most = -1;             // upper bound of a number from 0; -1: the flag is a string
};

std::span<const Flag> all_flags();
// HONE_ variables of this process that are not in the table.
std::vector<std::string> unknown_flags();

// The flag's string, or its fallback. The name must be in the table.
std::string flag(std::string_view name);
// The flag as a number; throws UserError when it is not a number or is out of the table's range.
long flag_number(std::string_view name);

}  // namespace hone
