# cmake -DFROM=src/folder/file.h -DTO=... -P public_header.cmake: the copy of a header that users see.
file(READ ${FROM} text)
string(REGEX REPLACE "#include \"(api/runtime/|api/)?([^\"]+)\"" "#include <hone/\\2>" text "${text}")
file(WRITE ${TO} "${text}")
