// SPDX-License-Identifier: Apache-2.0
// stored_factors.cpp: names of datasets in an output of several.
#include "io/read/stored_factors.hpp"

#include <algorithm>

namespace qrtool {

std::string name_in_output(const std::string& source) {
  return source.substr(std::min(source.find_first_not_of('/'), source.size()));
}

}  // namespace qrtool
