# SPDX-License-Identifier: Apache-2.0
# embed_text.cmake: turns a text file into a C++ function that returns the text. Run as a script:
#   cmake -DINPUT=file -DOUTPUT=file.cpp -DHEADER=header.hpp -DFUNCTION=name -P embed_text.cmake
# HEADER declares `std::string_view name();` in the namespace qrtool.
cmake_minimum_required(VERSION 3.22)
file(READ "${INPUT}" text)
file(WRITE "${OUTPUT}" "// Written by core/embed_text.cmake.
#include \"${HEADER}\"

namespace qrtool {

std::string_view ${FUNCTION}() {
  using namespace std::string_view_literals;  // whose length a compiler need not count
  return R\"QR_TEXT(${text})QR_TEXT\"sv;
}

}  // namespace qrtool
")
