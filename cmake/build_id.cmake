cmake_minimum_required(VERSION 3.25)
# Writes OUT, a C++ file with the hash of FLAGS and of the files listed in LIST, one a line: what
# decides how models are compiled, and so part of the keys of everything that is cached.
file(STRINGS ${LIST} files)
set(all "${FLAGS}")
foreach(file IN LISTS files)
  file(SHA256 ${file} hash)
  string(APPEND all "${hash}")
endforeach()
string(SHA256 id "${all}")
string(SUBSTRING ${id} 0 32 id)
file(CONFIGURE OUTPUT ${OUT} @ONLY CONTENT
"#include \"compile/build_id.h\"

namespace hone {
std::string_view build_id() { return \"@id@\"; }
}  // namespace hone
")
