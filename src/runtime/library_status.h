// The result of opening a library at run time.
#pragma once

#include <string>

namespace hone {

struct LibraryStatus {
  std::string name;           // name of its strategy
  std::string version, file;  // what was found
  std::string failure;        // why it cannot be used: what was searched, and where
  std::string hint;           // how to get it, and what happens without it
};

}  // namespace hone
