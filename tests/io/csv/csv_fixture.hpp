// SPDX-License-Identifier: Apache-2.0
// csv_fixture.hpp: reads CSV texts.
#pragma once

#include <memory>
#include <string>

#include "io/open/input.hpp"
#include "tests/io/reading.hpp"

namespace qrtool {

class CsvReaderTest : public FileTest {};

inline std::unique_ptr<Reader> open_text(const std::string& text, const CsvOptions& options = {}) {
  write_text("x.csv", text);
  return open_input({.path = "x.csv", .dataset = "", .csv = options});
}

}  // namespace qrtool
