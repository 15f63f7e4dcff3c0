# SPDX-License-Identifier: Apache-2.0
# embed_table.cmake: turns a table of times into a C++ function that returns it. Run as a script:
#   cmake -DINPUT=file.csv -DOUTPUT=file.cpp -DHEADER=header.hpp -DFUNCTION=name -P embed_table.cmake
# HEADER declares `const CostTable& name();` in the namespace qrtool.
cmake_minimum_required(VERSION 3.22)
file(READ "${INPUT}" text)
file(SHA256 "${INPUT}" digest)
string(SUBSTRING "${digest}" 0 16 digest)
file(WRITE "${OUTPUT}" "// Written by core/embed_table.cmake.
#include \"${HEADER}\"

#include \"core/plan/cost.hpp\"

namespace qrtool {

const CostTable& ${FUNCTION}() {
  using namespace std::string_view_literals;  // whose length a compiler need not count
  static const CostTable table = CostTable::view(R\"QR_TEXT(${text})QR_TEXT\"sv, \"${digest}\");
  return table;
}

}  // namespace qrtool
")
