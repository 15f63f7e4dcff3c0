// SPDX-License-Identifier: Apache-2.0
// report_sax.cpp: reads the JSON of a report from its file.
#include "io/report/report_sax.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "core/error.hpp"
#include "core/text.hpp"
#include "io/file/input_file.hpp"

namespace qrtool {

bool parse_report(const std::string& path, ReportSax& handler) {
  readable_size(path);
  std::ifstream file(path);
  try {
    if (file.is_open()) return nlohmann::json::sax_parse(file, &handler);
  } catch (const std::ios_base::failure&) {  // of the buffer, which throws it at an error
  }
  throw InputError(fmt::format("cannot read '{}': {}", escape(path), std::strerror(errno)));
}

}  // namespace qrtool
