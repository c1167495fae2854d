// What became of a library that a device opens at run time.
#pragma once

#include <string>

namespace hone {

struct LibraryStatus {
  std::string name;           // as its strategy is called
  std::string version, file;  // what was found
  std::string failure;        // why it cannot be used: what was looked for, and where
  std::string hint;           // how to get it, and what happens without it
};

}  // namespace hone
