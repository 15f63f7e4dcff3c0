# SPDX-License-Identifier: Apache-2.0
# embed.cmake: turns gpu/**/*.cl into one C++ file of string literals. Run as a script:
#   cmake -DROOT=dir -DOUTPUT=file.cpp -P embed.cmake
# Names are paths from ROOT, the root of the repository. Every `#include "gpu/x.clh"` is replaced by
# the text of gpu/x.clh between #line marks, so that a line number in a build log is that of the file.
# A header with a guard QRTOOL_..._CLH stands there once, unless the first #include of it is within #if.
# Strings only, no lists: semicolons and brackets survive.

cmake_minimum_required(VERSION 3.22)

# expand(TEXT NAME DEPTH OUT): TEXT of file NAME with its includes replaced. DEPTH conditions stand around
# the #include of it; the variable `kernel` names the file of kernels that it becomes a part of.
function(expand text name depth out)
  set(result "#line 1 \"${name}\"\n")
  set(line 1)
  if(text MATCHES "#ifndef QRTOOL_[A-Z0-9_]+_CLH\n#define")
    if(depth EQUAL 0)
      set_property(GLOBAL PROPERTY "there ${name}" "${kernel}")
    endif()
    math(EXPR depth "${depth} - 1")  # the guard is no condition
  endif()
  while(TRUE)
    string(FIND "${text}" "#include \"" at)
    if(at LESS 0)
      break()
    endif()
    string(SUBSTRING "${text}" 0 ${at} before)
    string(SUBSTRING "${text}" ${at} -1 text)
    string(REGEX MATCH "^#include \"([^\"]+)\"" directive "${text}")
    set(header "${CMAKE_MATCH_1}")
    string(LENGTH "${directive}" length)
    string(SUBSTRING "${text}" ${length} -1 text)
    string(REGEX REPLACE "[^\n]" "" newlines "${before}")
    string(LENGTH "${newlines}" count)
    math(EXPR line "${line} + ${count}")
    string(REGEX MATCHALL "\n#if" begins "${before}")
    string(REGEX MATCHALL "\n#endif" ends "${before}")
    list(LENGTH begins begun)
    list(LENGTH ends ended)
    math(EXPR depth "${depth} + ${begun} - ${ended}")
    get_property(there GLOBAL PROPERTY "there ${header}")
    set(inner "")
    if(NOT there STREQUAL kernel)
      file(READ "${ROOT}/${header}" header_text)
      expand("${header_text}" "${header}" ${depth} inner)
    endif()
    # the rest of the directive's line belongs to line number `line`
    string(APPEND result "${before}${inner}#line ${line} \"${name}\"\n")
  endwhile()
  set(${out} "${result}${text}\n" PARENT_SCOPE)
endfunction()

file(GLOB_RECURSE files RELATIVE "${ROOT}" "${ROOT}/gpu/*.cl")
set(entries "")
foreach(name IN LISTS files)
  file(READ "${ROOT}/${name}" text)
  set(kernel "${name}")
  expand("${text}" "${name}" 0 source)
  string(APPEND entries "    {\"${name}\", R\"QR_KERNEL(${source})QR_KERNEL\"sv},\n")
endforeach()
file(WRITE "${OUTPUT}" "// Written by gpu/embed.cmake from the kernels in gpu.
#include \"gpu/host/kernel_sources.hpp\"

namespace qrtool {

std::span<const KernelSource> kernel_sources() {
  using namespace std::string_view_literals;  // whose length a compiler need not count
  static constexpr KernelSource sources[] = {
${entries}  };
  return sources;
}

}  // namespace qrtool
")
