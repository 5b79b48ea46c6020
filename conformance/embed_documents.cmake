# SPDX-License-Identifier: Apache-2.0
# qkcts_embed_documents(TARGET FUNCTION FILE...): compiles the files into TARGET as
#   namespace qkcts { std::span<const Document> FUNCTION(); }
# A file becomes one raw string literal, so the program needs no data folder at run time.
function(qkcts_embed_documents target function)
  set(source "${CMAKE_CURRENT_BINARY_DIR}/${function}.cpp")
  set(text "#include <array>\n#include <span>\n#include \"conformance/document.hpp\"\nnamespace qkcts {\n")
  string(APPEND text "std::span<const Document> ${function}();\nstd::span<const Document> ${function}() {\n")
  string(APPEND text "  static constexpr Document documents[] = {\n")
  foreach(file IN LISTS ARGN)
    get_filename_component(name "${file}" NAME_WLE)
    file(READ "${CMAKE_CURRENT_SOURCE_DIR}/${file}" content)
    string(APPEND text "    {\"${name}\", R\"qkcts(${content})qkcts\"},\n")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/${file}")
  endforeach()
  string(APPEND text "  };\n  return documents;\n}\n}  // namespace qkcts\n")
  file(CONFIGURE OUTPUT "${source}" CONTENT "${text}" @ONLY)
  target_sources(${target} PRIVATE "${source}")
endfunction()
