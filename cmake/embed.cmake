# Writes the parts of the report page as C++ strings: cmake -DPAGE=folder -DOUT=file.cpp -P this.
# The order of the scripts is the order in which they run.
function(read_all out)
  set(all "")
  foreach(name ${ARGN})
    file(READ ${PAGE}/${name} text)
    string(APPEND all "${text}")
  endforeach()
  set(${out} "${all}" PARENT_SCOPE)
endfunction()

read_all(html page.html)
read_all(style page.css)
read_all(script base.js layout.js graph.js summary.js kernels.js execution.js rest.js main.js)
set(code "#include \"report/page.h\"\n\nnamespace hone::page {\n\n")
foreach(part html style script)
  string(APPEND code "const std::string_view ${part} = R\"page_(${${part}})page_\";\n")
endforeach()
file(WRITE ${OUT} "${code}\n}  // namespace hone::page\n")
